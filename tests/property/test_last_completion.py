"""No schedule ends before what a tree proves of the last completion, and the checker agrees."""

from __future__ import annotations

from itertools import permutations, product

from hypothesis import given
from hypothesis import strategies as st

from frostline.certify import check_certificate
from frostline.relaxation.lagrangian import PriceProblem, certificate_of, prove_last


@st.composite
def problems(draw: st.DrawFn) -> PriceProblem:
    gpus = draw(st.integers(1, 5))
    option = st.tuples(st.integers(1, gpus), st.integers(0, 6), st.just(0))
    row = st.tuples(st.integers(-3, 9), st.lists(option, min_size=1, max_size=2))
    return PriceProblem.of_rows(gpus, draw(st.lists(row, min_size=1, max_size=4)))


def makespan(problem: PriceProblem) -> int:
    """Least last completion: in some order with some options, each job as early as it fits, is optimal."""
    options = [range(a, b) for a, b in zip(problem.first[:-1].tolist(), problem.first[1:].tolist(), strict=True)]
    orders = permutations(range(problem.jobs))
    return min(_ends(problem, order, chosen) for order, chosen in product(orders, product(*options)))


def _ends(problem: PriceProblem, order: tuple[int, ...], chosen: tuple[int, ...]) -> int:
    busy: list[tuple[int, int, int]] = []
    for job in order:
        release, width, length = (
            int(problem.release[job]),
            int(problem.width[chosen[job]]),
            int(problem.duration[chosen[job]]),
        )
        for start in sorted({release, *(end for _, end, _ in busy if end > release)}):
            marks = {start, *(b for b, _, _ in busy if start < b < start + length)}
            if all(sum(g for b, e, g in busy if b <= t < e) + width <= problem.gpus for t in marks) or not length:
                busy.append((start, start + length, width))
                break
    return max(end for _, end, _ in busy)


@given(problems(), st.integers(0, 3), st.sampled_from([1, 40, 10_000]))
def test_what_is_proved_is_true_and_accepted(problem: PriceProblem, beyond: int, most_nodes: int) -> None:
    least = makespan(problem)
    tree = prove_last(problem, least + beyond, most_nodes=most_nodes)
    assert tree.bound <= least
    assert not (tree.complete and beyond)
    report = check_certificate(certificate_of(problem, tree))
    assert (report.valid, report.bound_us) == (True, tree.bound)
    assert "completes its last job before" in report.proved


@given(problems())
def test_nothing_above_the_least_is_accepted(problem: PriceProblem) -> None:
    least = makespan(problem)
    document = certificate_of(problem, prove_last(problem, least))
    assert not check_certificate({**document, "bound": least + 1}).valid
