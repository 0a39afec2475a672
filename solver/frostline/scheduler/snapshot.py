"""A live scheduler as it is at one moment, to go on from there later or elsewhere."""

from __future__ import annotations

from copy import deepcopy
from typing import Generic, TypeVar

from frostline.errors import InvalidValueError

__all__ = ["Snapshot"]

_S = TypeVar("_S")
_FORM = 1


class Snapshot(Generic[_S]):
    """All that a scheduler knows at one moment: its jobs, reports, policy and predictor; see ``Scheduler.snapshot``.

    A snapshot can be pickled. Load a pickle only from a source that you trust, and by the version of frostline that
    wrote it: to load one can run any code.

    Parameters
    ----------
    scheduler : Scheduler
        The scheduler, which may go on: its copy is kept.
    """

    __slots__ = ("_form", "_scheduler")

    def __init__(self, scheduler: _S) -> None:
        self._form, self._scheduler = _FORM, deepcopy(scheduler)

    def restored(self) -> _S:
        """A scheduler that goes on from here; each call gives another one.

        Raises
        ------
        InvalidValueError
            Another version of frostline has written the snapshot.
        """
        if self._form != _FORM:
            raise InvalidValueError("snapshot", "form", self._form, f"must be {_FORM}, that of this version")
        return deepcopy(self._scheduler)
