"""Whatever stands in a certificate, what it is accepted for is true: no tree proves more than a schedule achieves.

Trees are put together at random, with prices of GPUs, of widths or of options; they come from no solver. The theorems
are in ``proofs/OptimalityTree.v`` and ``proofs/PointwiseCheck.v``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import permutations, product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from frostline.certify import check_certificate
from frostline.problem import Instance
from frostline.relaxation.lagrangian import PriceProblem
from frostline.testing import instances, schedules
from frostline.verify import check_bound, stated_problem

Document = dict[str, Any]
Windows = dict[int, tuple[int, float]]

ANY_TIME = float("inf")


def signed(problem: Document, bound: int, proof: object) -> Document:
    """A certificate with the digest that belongs to it."""
    content = {"format": "frostline/certificate", "version": 1, "problem": problem, "bound": bound, "proof": proof}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return {**content, "sha256": hashlib.sha256(text.encode()).hexdigest()}


@st.composite
def leaves(draw: st.DrawFn, problem: Document, most: int) -> Document:
    """Any prices up to so many, at any breakpoints."""
    times = sorted(draw(st.sets(st.integers(0, 30), min_size=2, max_size=5)))
    by = draw(st.sampled_from(["gpu", "width", "option"]))
    rows = {"gpu": 1, "width": len(set(problem["width"])), "option": len(problem["width"])}[by]
    row = st.lists(st.integers(0, most), min_size=len(times) - 1, max_size=len(times) - 1)
    prices = [draw(row) for _ in range(rows)]
    return {"by": by, "denominator": draw(st.integers(1, 4)), "times": times, "prices": prices}


@st.composite
def trees(draw: st.DrawFn, problem: Document, windows: Windows, depth: int) -> list[Any]:
    """Splits, narrower windows, and leaves; empty ones where a job has no start left."""
    if any(low > high for low, high in windows.values()):
        return ["empty"]
    shape = draw(st.sampled_from(["leaf", "split", "split", "narrow"])) if depth else "leaf"
    leaf = draw(leaves(problem, draw(st.sampled_from([1, 9]))))
    if shape == "leaf":
        return [leaf]
    job = draw(st.integers(0, len(problem["ids"]) - 1))
    low, high = windows[job]
    at = low + draw(st.integers(-1, 6))
    if shape == "split":
        by_then = draw(trees(problem, windows | {job: (low, min(high, at))}, depth - 1))
        return [[job, at], *by_then, *draw(trees(problem, windows | {job: (max(low, at + 1), high)}, depth - 1))]
    last = draw(st.none() | st.integers(at - 1, at + 4))
    inside = windows | {job: (at, ANY_TIME if last is None else last)}
    return [{**leaf, "windows": [[job, at, last]]}, *draw(trees(problem, inside, depth - 1))]


def proofs(problem: Document, end: int | None = None) -> st.SearchStrategy[list[Any]]:
    """Trees over a problem, for all schedules or for those that complete by an instant."""
    first = [0]
    for count in problem["options"] or [1] * len(problem["ids"]):
        first.append(first[-1] + count)
    windows: Windows = {}
    for job, release in enumerate(problem["release"]):
        shortest = min(problem["duration"][first[job] : first[job + 1]])
        windows[job] = release, ANY_TIME if end is None else end - shortest
    return trees(problem, windows, 3)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Document, list[list[tuple[int, int, int]]]]:
    """Up to 3 jobs with weights and up to 2 options of GPUs, duration and penalty; the document and the options."""
    gpus = draw(st.integers(1, 4))
    option = st.tuples(st.integers(1, gpus), st.integers(0, 6), st.integers(0, 3))
    options = draw(st.lists(st.lists(option, min_size=1, max_size=2), min_size=1, max_size=3))
    rows = [(draw(st.integers(0, 6)), row) for row in options]
    weights = [draw(st.integers(1, 3)) for _ in rows]
    return dict(PriceProblem.of_rows(gpus, rows, weights).document), options


def left_shifted(problem: Document, chosen: tuple[tuple[int, int, int], ...]) -> Iterator[list[int]]:
    """Completions of all schedules in which the jobs, in some order, start as early as they fit beside the others."""
    for order in permutations(range(len(chosen))):
        held: list[tuple[int, int, int]] = []
        done = [0] * len(chosen)
        for j in order:
            width, length, _ = chosen[j]
            release = problem["release"][j]
            for start in sorted({release, *(end for _, end, _ in held if end > release)}):
                marks = {start, *(begin for begin, _, _ in held if start < begin < start + length)}
                room = problem["gpus"] - width
                if not length or all(sum(g for b, e, g in held if b <= t < e) <= room for t in marks):
                    held.append((start, start + length, width))
                    done[j] = start + length
                    break
        yield done


def least_total(problem: Document, options: list[list[tuple[int, int, int]]]) -> int:
    """The optimum, by trying all orders and choices."""
    weight = problem["weight"] or [1] * len(options)
    return min(
        sum(w * end + penalty for w, end, (_, _, penalty) in zip(weight, done, chosen, strict=True))
        for chosen in product(*options)
        for done in left_shifted(problem, chosen)
    )


@given(problems(), st.data())
def test_no_tree_is_accepted_above_the_optimum(
    drawn: tuple[Document, list[list[tuple[int, int, int]]]], data: st.DataObject
) -> None:
    """``tree_certificate_sound``, with weights, options and penalties, and every kind of prices."""
    problem, options = drawn
    best = least_total(problem, options)
    report = check_certificate(signed(problem, best + 1, data.draw(proofs(problem))))
    assert [fault.kind for fault in report.faults] == ["unproved"]


@given(problems(), st.data())
def test_no_tree_is_accepted_for_a_last_completion_that_is_too_late(
    drawn: tuple[Document, list[list[tuple[int, int, int]]]], data: st.DataObject
) -> None:
    """``last_certificate_sound``."""
    problem, options = drawn
    problem |= {"weight": "last", "penalty": None}
    best = min(max(done) for chosen in product(*options) for done in left_shifted(problem, chosen))
    report = check_certificate(signed(problem, best + 1, data.draw(proofs(problem, best))))
    assert [fault.kind for fault in report.faults] == ["unproved"]


@given(instances(max_jobs=4, localities=("any", "server"), works=("fixed", "profiled")), st.data())
def test_ticks_that_are_too_coarse_prove_nothing_false(instance: Instance, data: st.DataObject) -> None:
    """``rounded_certificate_sound``, ``rounded_last_certificate_sound``, ``rounded_pointwise_sound``.

    Times of the instance are no multiples of the tick. The least bound above what a schedule achieves is refused,
    whatever the tree; so is the one above its last completion.
    """
    tick_us = data.draw(st.sampled_from([700_000, 1_000_000, 5_000_000]))
    header = {"tick_us": tick_us, "choices": "asked", "weight_unit": [1, 1], "weight": None}
    problem = stated_problem(instance, header)
    done = data.draw(schedules(instance)).completion_us.values()
    if not problem["ids"]:
        return
    refused = sum(done) // tick_us + 1
    for proof in ("pointwise", data.draw(proofs(problem))):
        report = check_bound(instance, signed(problem, refused, proof))
        assert [fault.kind for fault in report.faults] == ["unproved"]
    last = max(done) // tick_us + 1
    report = check_bound(instance, signed(problem | {"weight": "last"}, last, data.draw(proofs(problem, last - 1))))
    assert [fault.kind for fault in report.faults] == ["unproved"]
