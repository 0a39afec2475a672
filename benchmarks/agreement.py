"""Exact placement methods against each other, and heuristics against them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from placement import Case, cases

from frostline.errors import TooLargeError
from frostline.placement.place import place
from frostline.placement.result import PlacementResult

_EXACT = ("brute-force", "patterns", "cpsat", "milp-highs", "milp-cbc")
_HEURISTIC = ("best-fit", "heavy-edge", "contiguous", "local-search")


def placement_agreement(quick: bool) -> None:
    """Seeded cases by size: how many each exact method finishes, and every disagreement there is."""
    per_cell, limit_s = (1, 0.5) if quick else (50, 2.0)
    print(f"{4 * per_cell} cases per size: both models, tight and spare; cpsat and milp stop after {limit_s:g} s.")
    print("Finished: proved optimal, or for milp ended before the limit.\n")
    print(f"| GPUs | {' | '.join(_EXACT)} | optima that differ | bounds above a value | heuristics below an optimum |")
    print(f"|{'---|' * (len(_EXACT) + 4)}")
    for gpus in (8, 16) if quick else (8, 16, 24, 32, 64):
        tally = _Tally()
        for model in ("contention", "link"):
            for regime in ("tight", "spare"):
                for case in cases(gpus, model, regime, per_cell):
                    tally.add(case, limit_s, with_cbc=gpus <= 16)
        finished = " | ".join(str(tally.finished[method]) for method in _EXACT)
        print(f"| {gpus} | {finished} | {tally.differ} | {tally.above} | {tally.below} |", flush=True)


@dataclass
class _Tally:
    """Counts over the cases of one size."""

    finished: Counter[str] = field(default_factory=Counter)
    differ: int = 0
    above: int = 0
    below: int = 0

    def add(self, case: Case, limit_s: float, with_cbc: bool) -> None:
        """Solve a case by every method and compare."""
        exact = {}
        for method in _EXACT if with_cbc else _EXACT[:-1]:
            result = _solved(case, method, None if method in ("brute-force", "patterns") else limit_s)
            if result is not None:
                exact[method] = result
        done = {method: result for method, result in exact.items() if _finished(method, result, limit_s)}
        self.finished.update(done.keys())
        heuristics = [place(case.timing, case.free, method=method) for method in _HEURISTIC]
        values = {result.iteration_ns for result in done.values()}
        least = min(result.iteration_ns for result in [*exact.values(), *heuristics])
        self.differ += len(values) > 1
        self.above += sum(result.bound_ns > least for result in [*exact.values(), *heuristics])
        self.below += bool(values) and least < min(values)


def _solved(case: Case, method: str, limit_s: float | None) -> PlacementResult | None:
    try:
        return place(case.timing, case.free, method=method, time_limit_s=limit_s)
    except TooLargeError:
        return None


def _finished(method: str, result: PlacementResult, limit_s: float) -> bool:
    ended = method.startswith("milp") and result.runtime_s < 0.9 * limit_s
    return result.status.proved_optimal or ended
