"""The checker of bound certificates: exact integers, the standard library, and nothing of what made them.

A certificate states its problem, a bound, and a proof. The bound is on the weighted sum of completion times and
penalties of every schedule that runs each job in one piece, or on the last completion where ``weight`` is ``last``.

The proof is a tree in preorder: a split says that a job starts by an instant, or that it starts later, and is followed
by a proof for either; prices with narrower windows prove the bound where a job starts outside of its own, and are
followed by a proof for the inside; a leaf proves the bound by prices (:mod:`frostline.certify.prices`), or has a job
whose window is empty. A proof by prices alone is a tree of one leaf. That no schedule ends earlier than T is proved
of schedules that end by T − 1: their n jobs would have a total of n (T − 1) at most, and the tree proves a greater one.
The proof may also be the word ``pointwise``, for a bound that needs no more than to be computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from heapq import heappop, heappush, heapreplace
from itertools import zip_longest
from typing import Any

from frostline.certify.document import CertificateFault, CertificateReport, MalformedError, digest, fields, whole
from frostline.certify.prices import Jobs, Leaf, NegativePriceError, Window

__all__ = ["BoundFaultKind", "BoundReport", "check_certificate"]

_FORMAT, _VERSION = "frostline/certificate", 1


class BoundFaultKind(StrEnum):
    """What may be wrong with a certificate."""

    MALFORMED = "malformed"  # not a certificate, or a field that breaks its rule
    NEGATIVE_PRICE = "negative_price"  # a price below 0, with which prices prove nothing
    DAMAGED = "damaged"  # changed since it was written
    OTHER_PROBLEM = "other_problem"  # about another problem than the one given
    UNPROVED = "unproved"  # the proof does not reach the bound stated


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundReport(CertificateReport):
    """All faults of a certificate and, if it has none, what it proves.

    Parameters
    ----------
    bound_us : Fraction or None
        Bound in microseconds: on the weighted sum of completion times and penalties, or on the last completion.
    leaves : int
        Leaves of the proof.
    """

    bound_us: Fraction | None = None
    leaves: int = 0


def check_certificate(
    certificate: object, expected: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
) -> BoundReport:
    """Check a bound certificate; nothing in it is taken on trust but the problem it states.

    Parameters
    ----------
    certificate : object
        The document, as read from JSON.
    expected : function, optional
        The problem that it must state, from the one that it does
        (:func:`frostline.certify.stated.stated_problem`).

    Examples
    --------
    >>> from frostline.relaxation.lagrangian import PriceProblem, certificate_of, prove
    >>> problem = PriceProblem.of_rows(2, [(0, [(2, 1, 0)]), (0, [(2, 2, 0)]), (0, [(1, 3, 0)])])
    >>> certificate = certificate_of(problem, prove(problem, 10))
    >>> check_certificate(certificate).proved
    'no schedule without interruptions has a total completion time below 1e-05 s'
    >>> certificate["bound"] += 1
    >>> for fault in check_certificate(certificate).faults:
    ...     print(fault.kind, "|", fault.text)
    damaged | its content does not match its SHA-256
    unproved | the proof reaches a bound of 10 ticks, not 11
    """
    faults: list[CertificateFault] = []
    try:
        document = _Document(certificate)
        faults.extend(document.faults(expected))
    except MalformedError as error:
        negative = isinstance(error, NegativePriceError)
        kind = BoundFaultKind.NEGATIVE_PRICE if negative else BoundFaultKind.MALFORMED
        faults.append(CertificateFault(kind, str(error)))
    if faults:
        return BoundReport(faults=tuple(faults))
    return BoundReport(faults=(), proved=document.proved(), bound_us=document.bound_us, leaves=document.leaves)


class _Document:
    """A certificate whose outer fields keep their rules."""

    def __init__(self, certificate: object) -> None:
        names = "format version problem bound proof"
        form, version, self.problem, bound, self.proof, sha256 = fields(certificate, "certificate", f"{names} sha256")
        if form != _FORMAT or whole(version, "version") != _VERSION:
            raise MalformedError(f"certificate must have format {_FORMAT!r} and version {_VERSION}")
        self.jobs, self.bound, self.leaves = Jobs(self.problem), whole(bound, "bound"), 0
        content = dict(zip(names.split(), (form, version, self.problem, bound, self.proof), strict=True))
        self.damaged = sha256 != digest(content)

    def faults(self, expected: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None) -> Iterator[CertificateFault]:
        """What is wrong with it."""
        if self.damaged:
            yield CertificateFault(BoundFaultKind.DAMAGED, "its content does not match its SHA-256")
        if expected is not None:
            yield from _differences(self.problem, expected(self.problem))
        last = self.bound - 1
        reached = _pointwise(self.jobs) if self.proof == "pointwise" else self._reached(last)
        if self.jobs.last_only and reached is not None and reached <= last * len(self.jobs.ids):
            text = f"the proof does not exclude a last completion at {last} ticks, before {self.bound}"
            yield CertificateFault(BoundFaultKind.UNPROVED, text)
        elif not self.jobs.last_only and reached is not None and reached < self.bound:
            text = f"the proof reaches a bound of {reached} ticks, not {self.bound}"
            yield CertificateFault(BoundFaultKind.UNPROVED, text)

    def _reached(self, last: int) -> int | None:
        """Least bound of all leaves of the tree; None where every leaf has an empty window."""
        if type(self.proof) is not list:
            raise MalformedError("proof must be 'pointwise' or a list of nodes")
        nodes, reached = iter(enumerate(self.proof)), list[int]()
        branches = [self.jobs.windows(last if self.jobs.last_only else None)]
        while branches:
            windows = branches.pop()
            i, node = next(nodes, (len(self.proof), None))
            path = f"proof[{i}]"
            if type(node) is list:
                job, at = self._split(node, path)
                low, high = windows[job]
                branches += [windows | {job: (max(low, at + 1), high)}, windows | {job: (low, min(high, at))}]
            elif type(node) is dict and "windows" in node:
                narrower = self._windows(node["windows"], f"{path}.windows")
                prices = {name: value for name, value in node.items() if name != "windows"}
                reached.append(Leaf(prices, path, self.jobs).bound(windows, narrower))
                branches.append(windows | narrower)
            else:
                self.leaves += 1
                if all(low <= high for low, high in windows.values()):
                    reached.append(Leaf(node, path, self.jobs).bound(windows))
                elif node != "empty":
                    raise MalformedError(f"{path} must be 'empty': a job has no start left")
        if next(nodes, None) is not None:
            raise MalformedError("proof must end with its last leaf")
        return min(reached, default=None)

    def _split(self, node: list[Any], path: str) -> tuple[int, int]:
        if len(node) != 2:
            raise MalformedError(f"{path} must name a job and an instant")
        job, at = whole(node[0], f"{path}[0]", 0), whole(node[1], f"{path}[1]")
        if job >= len(self.jobs.ids):
            raise MalformedError(f"{path}[0]={job} must be below the number of jobs, {len(self.jobs.ids)}")
        return job, at

    def _windows(self, record: object, path: str) -> dict[int, Window]:
        """Narrower windows: job, earliest start, latest start or null."""
        if type(record) is not list or any(type(row) is not list or len(row) != 3 for row in record):
            raise MalformedError(f"{path} must be a list of jobs with an earliest and a latest start")
        windows: dict[int, Window] = {}
        for i, (job, low, high) in enumerate(record):
            self._split([job, low], f"{path}[{i}]")
            windows[job] = low, self.jobs.latest if high is None else whole(high, f"{path}[{i}][2]")
        return windows

    @property
    def bound_us(self) -> Fraction:
        return Fraction(self.bound * self.jobs.tick_us * self.jobs.unit[0], self.jobs.unit[1])

    def proved(self) -> str:
        """What it proves, in a sentence."""
        bound = f"{float(self.bound_us / 1_000_000):.12g} s"
        if self.jobs.last_only:
            return f"no schedule without interruptions completes its last job before {bound}"
        weighted = self.problem["weight"] is not None or self.jobs.unit != [1, 1]
        what = "total weighted completion time" if weighted else "total completion time"
        what += " with penalties" if self.problem["penalty"] is not None else ""
        return f"no schedule without interruptions has a {what} below {bound}"


def _pointwise(jobs: Jobs) -> int:
    """Sum of the k-th least of what single jobs and the virtual machine complete, rounded up.

    The machine is as fast as all GPUs and serves the job of least remaining work; it has done no fewer jobs at any time
    than any schedule (L. Schrage, Operations Research 16(3), 1968). Time is in ticks over the number of GPUs.
    """
    if len(jobs.width) != len(jobs.ids) or set(jobs.weight) - {1} or any(jobs.penalty) or jobs.last_only:
        raise MalformedError("proof must not be 'pointwise' for jobs with options, weights or penalties")
    rows = sorted(zip(jobs.release, jobs.width, jobs.duration, strict=True))
    single = sorted((release + duration) * jobs.gpus for release, _, duration in rows)
    virtual: list[int] = []
    waiting: list[int] = []
    for (release, width, duration), following in zip_longest(rows, rows[1:]):
        clock = release * jobs.gpus
        heappush(waiting, width * duration)
        left = sum(waiting) if following is None else following[0] * jobs.gpus - clock
        while waiting and waiting[0] <= left:
            left -= waiting[0]
            clock += heappop(waiting)
            virtual.append(clock)
        if waiting:
            heapreplace(waiting, waiting[0] - left)
    return -(-sum(map(max, single, virtual)) // jobs.gpus)


def _differences(stated: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[CertificateFault]:
    """How the problem of a certificate differs from the one it must be about."""
    there = set(stated["ids"])
    missing = [job for job in given["ids"] if job not in there]
    if missing:
        whom = f"job {missing[0]!r} is" if len(missing) == 1 else f"job {missing[0]!r} and {len(missing) - 1} more are"
        yield CertificateFault(BoundFaultKind.OTHER_PROBLEM, f"{whom} left out of it", missing[0])
        return
    for name, value in given.items():
        if stated[name] == value:
            continue
        job, text = None, f"it has another {name} than the problem given"
        if type(value) is type(stated[name]) is list and len(value) == len(stated[name]) == len(given["ids"]):
            j = next(j for j, (one, two) in enumerate(zip(stated[name], value, strict=True)) if one != two)
            job = given["ids"][j]
            text = f"job {job!r} has {name} {stated[name][j]!r} in it, not {value[j]!r}"
        yield CertificateFault(BoundFaultKind.OTHER_PROBLEM, text, job)
