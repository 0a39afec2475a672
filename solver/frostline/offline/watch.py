"""Run a solver that listens to nobody: the caller's thread stays free for Ctrl-C, stop rules and progress."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["watched"]

_POLL_S = 0.05


def watched(run: Callable[[], object], stop: Callable[[], object], asked: Callable[[], bool]) -> bool:
    """Call ``run`` in a thread until it returns; whether Ctrl-C ended it. Its errors are raised here.

    Parameters
    ----------
    run : callable
        What takes long.
    stop : callable
        Makes ``run`` return soon.
    asked : callable
        Asked again and again, in this thread, whether to stop. What it raises stops the run and is then raised.

    Examples
    --------
    >>> found = []
    >>> watched(lambda: found.append(42), lambda: None, lambda: False), found
    (False, [42])
    """
    done, errors = threading.Event(), list[BaseException]()

    def call() -> None:
        try:
            run()
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    threading.Thread(target=call, daemon=True).start()
    interrupted = stopping = False
    raised: BaseException | None = None
    # An interrupted Thread.join may take a thread for dead that runs on.
    while not done.is_set():
        try:
            done.wait(_POLL_S)
            stopping = stopping or asked()
        except KeyboardInterrupt:
            interrupted = stopping = True
        except BaseException as error:
            raised, stopping = error, True
        if stopping:
            stop()  # again and again: it does nothing before the run has got going
    if raised is not None or errors:
        raise raised if raised is not None else errors[0]
    return interrupted
