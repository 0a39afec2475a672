"""Ctrl-C during a search: the solver stops, and what was found by then is not lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from frostline.placement.answer import Answer

__all__ = ["InterruptedSearchError", "run_interruptibly"]

_POLL_S = 0.05

T = TypeVar("T")


class InterruptedSearchError(KeyboardInterrupt):
    """Ctrl-C during a search that has an answer already.

    Parameters
    ----------
    answer : Answer
        The best so far.
    """

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


def run_interruptibly(run: Callable[[], T], stop: Callable[[], object]) -> tuple[T, bool]:
    """Result of a call that does not listen to Ctrl-C, and whether there was one.

    The call runs in a thread of its own, so that this one can be interrupted. Errors of the call are raised here.

    Parameters
    ----------
    run : callable
        What takes long.
    stop : callable
        Makes ``run`` return soon.

    Examples
    --------
    >>> run_interruptibly(lambda: 6 * 7, lambda: None)
    (42, False)
    """
    call = _Call(run)
    threading.Thread(target=call, daemon=True).start()
    interrupted = False
    # An interrupted Thread.join may take a thread for dead that runs on.
    while not call.done.is_set():
        try:
            call.done.wait(_POLL_S)
        except KeyboardInterrupt:
            interrupted = True
        if interrupted:
            stop()  # again and again: it does nothing before the call has got going
    return call.result(), interrupted


class _Call(Generic[T]):
    """A call that keeps its result or its error."""

    def __init__(self, run: Callable[[], T]) -> None:
        self._run = run
        self.done = threading.Event()
        self._results: list[T] = []
        self._error: BaseException | None = None

    def __call__(self) -> None:
        try:
            self._results.append(self._run())
        except BaseException as error:
            self._error = error
        finally:
            self.done.set()

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._results[0]
