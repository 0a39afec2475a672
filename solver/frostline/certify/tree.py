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

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from heapq import heappop, heappush, heapreplace
from typing import Any

from .document import CertificateFault, CertificateReport, MalformedError, listed, opened, whole
from .prices import Jobs, Leaf, NegativePriceError


class BoundFaultKind(StrEnum):
    """What may be wrong with a certificate."""

    MALFORMED = "malformed"  # not a certificate, or a field that breaks its rule
    NEGATIVE_PRICE = "negative_price"  # a price below 0, with which prices prove nothing
    DAMAGED = "damaged"  # changed since it was written
    OTHER_PROBLEM = "other_problem"  # about another problem than the one given
    UNPROVED = "unproved"  # the proof does not reach the bound stated


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundReport(CertificateReport):
    """All faults of a certificate or the bound that it proves, in microseconds, and its problem, if that is sound."""

    bound_us: Fraction | None = None
    problem: Mapping[str, Any] | None = None


def check_certificate(certificate: object) -> BoundReport:
    """Check a bound certificate, as read from JSON; nothing in it is taken on trust but the problem it states.

    Examples
    --------
    >>> from frostline.relaxation.lagrangian import PriceProblem, certificate_of, prove
    >>> problem = PriceProblem.of_rows(2, [(0, [(2, 1, 0)]), (0, [(2, 2, 0)]), (0, [(1, 3, 0)])])
    >>> certificate = certificate_of(problem, prove(problem, 10))
    >>> check_certificate(certificate).proved
    'no schedule without interruptions has a total completion time below 1e-05 s'
    >>> [fault.text for fault in check_certificate(certificate | {"bound": 11}).faults]
    ['its content does not match its SHA-256', 'the proof reaches a bound of 10 ticks, not 11']
    """
    faults, sound = list[CertificateFault](), None
    try:
        (problem, bound, proof), intact = opened(certificate, "frostline/certificate", "problem bound proof")
        if not intact:
            faults.append(CertificateFault(BoundFaultKind.DAMAGED, "its content does not match its SHA-256"))
        jobs, bound, sound = Jobs(problem), whole(bound, "bound"), problem
        if missed := _missed(jobs, bound, proof):
            faults.append(CertificateFault(BoundFaultKind.UNPROVED, missed))
    except MalformedError as error:
        kind = BoundFaultKind.NEGATIVE_PRICE if isinstance(error, NegativePriceError) else BoundFaultKind.MALFORMED
        faults.append(CertificateFault(kind, str(error)))
    if faults:
        return BoundReport(faults=tuple(faults), problem=sound)
    bound_us = Fraction(bound * jobs.tick_us * jobs.unit[0], jobs.unit[1])
    return BoundReport(faults=(), proved=_sentence(problem, bound_us), bound_us=bound_us, problem=problem)


def _sentence(problem: Mapping[str, Any], bound_us: Fraction) -> str:
    """What a bound on a problem says."""
    weighted = problem["weight"] is not None or problem["weight_unit"] != [1, 1]
    what = f"total{' weighted' if weighted else ''} completion time{' with penalties' if problem['penalty'] else ''}"
    what = "completes its last job before" if problem["weight"] == "last" else f"has a {what} below"
    return f"no schedule without interruptions {what} {float(bound_us / 1_000_000):.12g} s"


def _missed(jobs: Jobs, bound: int, proof: object) -> str:
    """What a proof does not prove of a bound, in a sentence; nothing if it proves it."""
    reached = _pointwise(jobs) if proof == "pointwise" else _reached(jobs, bound - 1, proof)
    if reached is None or reached > (bound - 1) * (len(jobs.ids) if jobs.last_only else 1):
        return ""
    if jobs.last_only:
        return f"the proof does not exclude a last completion at {bound - 1} ticks, before {bound}"
    return f"the proof reaches a bound of {reached} ticks, not {bound}"


def _reached(jobs: Jobs, last: int, proof: object) -> int | None:
    """Least bound of all leaves of a tree; None where every leaf has an empty window."""
    if type(proof) is not list:
        raise MalformedError("proof must be 'pointwise' or a list of nodes")
    nodes, reached, branches = iter(enumerate(proof)), list[int](), [jobs.windows(last if jobs.last_only else None)]
    while branches:
        windows = branches.pop()
        i, node = next(nodes, (len(proof), None))
        path = f"proof[{i}]"
        if type(node) is list:
            job, at = _job_at(node, path, jobs, 2)
            low, high = windows[job]
            branches += [windows | {job: (max(low, at + 1), high)}, windows | {job: (low, min(high, at))}]
        elif type(node) is dict and "windows" in node:
            rows = enumerate(listed(node["windows"], f"{path}.windows"))
            inside = (_job_at(row, f"{path}.windows[{k}]", jobs, 3) for k, row in rows)
            narrower = {job: (low, high) for job, low, high in inside}
            prices = {name: value for name, value in node.items() if name != "windows"}
            reached.append(Leaf(prices, path, jobs).bound(windows, narrower))
            branches.append(windows | narrower)
        elif all(low <= high for low, high in windows.values()):
            reached.append(Leaf(node, path, jobs).bound(windows, {}))
        elif node != "empty":
            raise MalformedError(f"{path} must be 'empty': a job has no start left")
    if next(nodes, None) is not None:
        raise MalformedError("proof must end with its last leaf")
    return min(reached, default=None)


def _job_at(node: object, path: str, jobs: Jobs, length: int) -> list[int]:
    """A job and one or two instants, the second of which may be null: any time."""
    job, at, *until = listed(node, path, length)
    if whole(job, f"{path}[0]", 0) >= len(jobs.ids):
        raise MalformedError(f"{path}[0]={job} must be below the number of jobs, {len(jobs.ids)}")
    ends = [jobs.latest if end is None else whole(end, f"{path}[2]") for end in until]
    return [job, whole(at, f"{path}[1]"), *ends]


def _pointwise(jobs: Jobs) -> int:
    """Sum of the k-th least of what single jobs and the virtual machine complete, rounded up.

    The machine is as fast as all GPUs and serves the job of least remaining work; it has done no fewer jobs at any time
    than any schedule (L. Schrage, Operations Research 16(3), 1968). Time is in ticks over the number of GPUs.
    """
    if len(jobs.width) != len(jobs.ids) or set(jobs.weight) - {1} or any(jobs.penalty) or jobs.last_only:
        raise MalformedError("proof must not be 'pointwise' for jobs with options, weights or penalties")
    rows = sorted(zip(jobs.release, jobs.width, jobs.duration, strict=True))
    single = sorted((release + duration) * jobs.gpus for release, _, duration in rows)
    virtual, waiting, ends = list[int](), list[int](), [*(release for release, *_ in rows[1:]), jobs.latest]
    for (release, width, duration), end in zip(rows, ends, strict=False):
        clock = release * jobs.gpus
        heappush(waiting, width * duration)
        while waiting and clock + waiting[0] <= end * jobs.gpus:
            clock += heappop(waiting)
            virtual.append(clock)
        if waiting:
            heapreplace(waiting, waiting[0] - end * jobs.gpus + clock)
    return -(-sum(map(max, single, virtual)) // jobs.gpus)
