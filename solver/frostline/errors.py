"""Errors: each names what was wrong, its value, and the rule it broke."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from pathlib import Path

__all__ = [
    "FileError",
    "FrostlineError",
    "FrostlineWarning",
    "InvalidValueError",
    "MissingExtraError",
    "TooLargeError",
    "TraceError",
    "UnknownNameError",
]

_MOST_NAMES = 40


class FrostlineError(Exception):
    """Base of every error that frostline raises on purpose."""


class FrostlineWarning(UserWarning):
    """Legal input that is most likely a mistake, such as a network of many layers without an edge."""


class InvalidValueError(FrostlineError, ValueError):
    """A value breaks a rule of the problem.

    Parameters
    ----------
    subject : str
        What carries the value, such as ``"job 'b7'"``.
    field : str
        Name of the field.
    value : object
        The bad value.
    rule : str
        The rule it breaks.

    Examples
    --------
    >>> str(InvalidValueError("job 'b7'", "gpus", 0, "must be at least 1"))
    "job 'b7': gpus=0 must be at least 1"
    """

    def __init__(self, subject: str, field: str, value: object, rule: str) -> None:
        super().__init__(f"{subject}: {field}={value!r} {rule}")
        self.subject, self.field, self.value, self.rule = subject, field, value, rule


class TooLargeError(FrostlineError, ValueError):
    """A case that is beyond an exact method, by an estimate made before any work.

    Parameters
    ----------
    subject : str
        What was asked for, such as ``placement``.
    method : str
        The method.
    what : str
        What is counted.
    estimate, limit : int
        How many there are, and the most that the method takes.

    Examples
    --------
    >>> str(TooLargeError("placement", "brute-force", "steps", 12_345_678_901, 10**9))
    'placement: method brute-force would take about 1.2e+10 steps, at most 1e+09 are allowed'
    """

    def __init__(self, subject: str, method: str, what: str, estimate: int, limit: int) -> None:
        about = f"{estimate:.2g}" if estimate < 10**300 else f"1e+{math.floor(math.log10(estimate))}"
        text = f"would take about {about} {what}, at most {limit:.2g} are allowed"
        super().__init__(f"{subject}: method {method} {text}")
        self.method, self.what, self.estimate, self.limit = method, what, estimate, limit


class FileError(FrostlineError, ValueError):
    """A file cannot be read, or does not hold what its format promises.

    Parameters
    ----------
    path : Path or str
        The file.
    problem : str
        What is wrong, with the place inside the file where there is one.
    """

    def __init__(self, path: Path | str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path, self.problem = str(path), problem


class TraceError(FileError):
    """One or more rows of a trace break a rule; the message lists them (the first twenty)."""

    def __init__(self, path: Path | str, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        shown = "; ".join(self.faults[:20])
        more = len(self.faults) - 20
        super().__init__(path, shown + (f"; and {more} more" if more > 0 else ""))


class UnknownNameError(FrostlineError, LookupError):
    """A name is not among the known ones; near misses are suggested, and up to 40 of the known ones are listed.

    Examples
    --------
    >>> str(UnknownNameError("policy", "fito", ["fifo", "sjf"]))
    "unknown policy 'fito'; did you mean 'fifo'? Known: fifo, sjf"
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(str(name), names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        super().__init__(f"unknown {kind} {name!r}{hint} Known: {', '.join(names[:_MOST_NAMES])}{more}")
        self.kind, self.name, self.known = kind, name, tuple(names)


class MissingExtraError(FrostlineError, ImportError):
    """A package that frostline needs for some purpose only is not installed.

    Parameters
    ----------
    purpose : str
        What it is for.
    package : str
        The package.
    extra : str
        Extra of frostline that brings it.

    Examples
    --------
    >>> str(MissingExtraError("a plot", "matplotlib", "plot"))
    "a plot needs matplotlib, which is not installed; pip install 'frostline[plot]' brings it"
    """

    def __init__(self, purpose: str, package: str, extra: str) -> None:
        text = f"{purpose} needs {package}, which is not installed; pip install 'frostline[{extra}]' brings it"
        super().__init__(text)
        self.purpose, self.package, self.extra = purpose, package, extra
