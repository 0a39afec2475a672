"""Time that a device spends on a piece of work."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import torch

__all__ = ["Clock"]

Result = TypeVar("Result")


class Clock:
    """Clock of a device: CPU time of the calling thread, or CUDA events on the current stream.

    CPU time hardly changes with what else runs on the machine. Of work that torch spreads over several threads it
    sees the part of the calling one; ``torch.set_num_threads(1)`` makes it the whole.

    Parameters
    ----------
    device : torch.device
        The device.

    Examples
    --------
    >>> clock = Clock(torch.device("cpu"))
    >>> total, seconds = clock.timed(lambda: sum(range(1000)))
    >>> total, seconds > 0
    (499500, True)
    """

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"

    def now(self) -> Any:
        """A mark in time, on a GPU one that the work before it has yet to reach."""
        if not self._cuda:
            return time.thread_time()
        mark = torch.cuda.Event(enable_timing=True)
        mark.record()
        return mark

    def seconds(self, start: Any, end: Any) -> float:
        """Seconds between two marks, once the later one is reached."""
        if not self._cuda:
            return float(end - start)
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3

    def timed(self, call: Callable[[], Result]) -> tuple[Result, float]:
        """What a call returns, and its seconds."""
        start = self.now()
        result = call()
        return result, self.seconds(start, self.now())
