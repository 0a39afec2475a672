"""The default method: local search at once, and exact methods for as long as there is time."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from frostline.errors import InvalidValueError, TooLargeError
from frostline.placement.answer import Answer
from frostline.placement.cpsat import cpsat
from frostline.placement.incumbent import close_enough, heuristic
from frostline.placement.interruptible import InterruptedSearchError
from frostline.placement.patterns import patterns
from frostline.placement.request import Progress, Request

__all__ = ["auto"]

_TURNS = ((patterns, 0.05), (cpsat, 0.05), (patterns, 0.5), (cpsat, 1.0))
"""Exact methods in turn, each with a share of the time that is left."""

_LOADING_S = 1.0


def auto(request: Request) -> Answer:
    """Local search; with a deadline, exact methods until the answer is proved optimal or the time is up.

    Without a deadline it is local search alone, so that calls stay fast and never depend on a clock. With one, column
    generation and CP-SAT take turns, a short one and a long one each: either is quick on cases where the other is not.
    Each starts from the best answer so far, so that none makes it worse. A method that refuses the case is left out,
    and so is CP-SAT while it would take longer to load than there is time.

    Parameters
    ----------
    request : Request
        Stage graph and free GPUs.

    Raises
    ------
    InterruptedSearchError
        Ctrl-C after local search; it has the best so far.

    Examples
    --------
    >>> import time
    >>> from frostline.timing.contention import ContentionTime
    >>> from frostline.timing.stage_graph import StageGraph
    >>> graph = StageGraph(replicas=[2, 3, 2], compute_s=[0] * 3, edges={(0, 1): 6, (1, 2): 12, (0, 2): 8})
    >>> request = Request(timing=ContentionTime(graph=graph, nic_bytes_per_s=1), free=(4, 3))
    >>> auto(request).bound_ns
    0
    >>> answer = auto(replace(request, deadline_s=time.perf_counter() + 10))
    >>> answer.bound_ns == request.value_ns(answer.matrix)
    True
    """
    best = heuristic(request)
    if math.isinf(request.deadline_s):
        return best
    watch = _Watch(request.progress)
    watched = replace(request, progress=watch if request.progress else None)
    try:
        watch.tell(request, best)
        for method, share in _TURNS:
            if watch.stopped or request.late or close_enough(request, best):
                break
            best = _turn(replace(watched, deadline_s=time.perf_counter() + share * request.left_s), method, best)
            watch.tell(request, best)
    except InterruptedSearchError:
        raise
    except KeyboardInterrupt:
        raise InterruptedSearchError(best) from None
    return best


def _turn(request: Request, method: Callable[[Request, Answer], Answer], best: Answer) -> Answer:
    """Best answer after a turn of a method."""
    if method is cpsat and "ortools.sat.python.cp_model" not in sys.modules and request.left_s < _LOADING_S:
        return best
    try:
        return method(request, best)
    except (TooLargeError, InvalidValueError):
        return best


class _Watch:
    """Progress of all turns together, which remembers that it was asked to stop."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self.stopped = False

    def __call__(self, value_ns: int, bound_ns: int) -> bool:
        if self._progress is not None and self._progress(value_ns, bound_ns):
            self.stopped = True
        return self.stopped

    def tell(self, request: Request, answer: Answer) -> None:
        """Tell of an answer."""
        self(request.value_ns(answer.matrix), max(answer.bound_ns, request.timing.bound_ns))
