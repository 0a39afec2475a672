"""Fits accuracy-debt laws to measured freezing runs, and judges them on schedules and seeds they have not seen.

``python benchmarks/debt_law.py --write`` also rewrites the shipped priors and curves and the tables of the docs.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from frostline.freezing.curve import ExponentialLoss, MeasuredLoss
from frostline.freezing.penalty import DebtLaw, frozen_shares, phases_of
from frostline.freezing.progress import FreezeState, FreezeTerms
from frostline.freezing.refit import FinishedRun, fit_law
from frostline.freezing.schedules import PipeTransformer, schedule_levels
from frostline.freezing.trajectory import freeze_trajectory

_ROOT = Path(__file__).parent.parent
_FREEZING = _ROOT / "solver" / "frostline" / "freezing"
_DOCS = _ROOT / "docs" / "freezing_debt.md"
_MARK = "<!-- benchmarks/debt_law.py --write -->"
_COMMAND = "python benchmarks/debt_law.py --write"

_QUANTILE = 0.9
_EARLIEST = 0.05  # freezing at random initialisation follows no law; the warm-up rules it out
_SLACK_POINTS = 0.5
_BUDGETS_POINTS = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class Task:
    """A measured task: its runs, and the forward multiply-adds of its units, the head last."""

    name: str
    family: str
    table: str
    unit_costs: tuple[int, ...]
    what: str

    @property
    def shares(self) -> tuple[float, ...]:
        """Frozen share when the leading 0, 1, ... units are frozen."""
        return frozen_shares(self.unit_costs)


def _block(width: int, length: int) -> int:
    """Multiply-adds of a transformer block: four projections, two layers of four times the width, attention."""
    return 12 * width * width * length + 2 * length * length * width


TASKS = (
    Task("mlp-mnist", "mlp", "train_mlp_mnist.csv", (196 * 48, *[48 * 48] * 6, 480), "MLP 7 x 48, 5,000 MNIST images"),
    Task("mlp-digits", "mlp", "train_mlp_w48.csv", (64 * 48, *[48 * 48] * 6, 480), "MLP 7 x 48, digits"),
    Task(
        "cnn-digits",
        "cnn",
        "train_cnn_digits.csv",
        (64 * 72, 2 * 64 * 576, 2 * 64 * 576, 16 * (1152 + 2304 + 128), 16 * 2 * 2304, 160),
        "ResNet of width 8, digits",
    ),
    Task(
        "transformer-digits",
        "transformer",
        "train_tfm_digits.csv",
        (8 * 8 * 24, *[_block(24, 8)] * 5, 240),
        "transformer of 5 blocks, digits",
    ),
)

# Fine-tuning of ViT-B/16 on CIFAR-100 for 10 epochs with PipeTransformer's schedule: alpha, accuracy; without: 0.9121.
_FINE_TUNING = ((1 / 5, 0.9133), (1 / 4, 0.9113), (1 / 3, 0.9078), (2 / 5, 0.9082), (1 / 2, 0.8984))
_FINE_TUNING_BASE = 0.9121
_FINE_TUNING_SOURCE = {
    "tables": "PipeTransformer (He et al., ICML 2021): ViT-B/16, CIFAR-100, accuracy by alpha, 10 epochs, 12 blocks",
    "rule": "a = 2 and c = 3 assumed, B_0 = 0.3; least A that is 0.1 points or more above every published loss",
    "agrees": "BERT: AutoFreeze (Liu et al. 2021) -0.13 to 0.08 points at 1.6 to 2.2 times the speed",
}


def debt_law(quick: bool) -> None:
    """How far the debt of measured schedules exceeds what laws fitted to other runs say."""
    del quick
    print("\n".join(_report(_fits())))


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: seed, units frozen, progress at which they were, and what it lost."""

    seed: int
    level: int
    start: float
    loss_points: float


@cache
def _runs(task: Task) -> tuple[Measured, ...]:
    with (_folder() / task.table).open(encoding="utf-8", newline="") as file:
        return tuple(
            Measured(
                int(row["seed"]),
                int(row["k"]),
                int(row["step0"]) / int(row["steps"]),
                100 * (float(row["base_acc"]) - float(row["final_acc"])),
            )
            for row in csv.DictReader(file)
        )


def _folder() -> Path:
    return Path(os.environ.get("FROSTLINE_SHARED", _ROOT.parent / "shared")) / "data" / "freezing"


def _finished(task: Task, keep: Callable[[Measured], bool] = lambda run: True) -> list[FinishedRun]:
    return [
        FinishedRun(history=[(run.start, 1.0, task.shares[run.level])], loss_points=run.loss_points)
        for run in _runs(task)
        if run.start >= _EARLIEST and keep(run)
    ]


def _fit(runs: Sequence[FinishedRun]) -> DebtLaw:
    law = fit_law(runs, _QUANTILE)
    return DebtLaw(a=_digits(law.a), A=_digits(law.A), c=_digits(law.c), B_0=_digits(law.B_0), warm_up=law.warm_up)


def _digits(value: float) -> float:
    return float(f"{value:.4g}")


def _fits() -> dict[str, DebtLaw]:
    return {task.name: _fit(_finished(task)) for task in TASKS}


def priors(fits: dict[str, DebtLaw]) -> dict[str, tuple[DebtLaw, dict[str, str]]]:
    """Law and source of each family: the costliest of its tasks."""
    found: dict[str, tuple[DebtLaw, dict[str, str]]] = {}
    for family in dict.fromkeys(task.family for task in TASKS):
        tasks = [task for task in TASKS if task.family == family]
        worst = max(tasks, key=lambda task: fits[task.name].debt_points(1, 0.2, 1))
        source = {
            "tables": "; ".join(f"{task.table}: {task.what}, {len(_seeds(task))} seeds" for task in tasks),
            "rule": f"{_QUANTILE} quantile of single runs that freeze from {_EARLIEST} of progress on; {worst.name}",
        }
        found[family] = (fits[worst.name], source)
    laws = [law for law, _ in found.values()]
    costliest = max(laws, key=lambda law: law.debt_points(1, 0.2, 1))
    unknown = DebtLaw(a=min(law.a for law in laws), A=costliest.A, c=costliest.c, B_0=max(law.B_0 for law in laws))
    found["unknown"] = (unknown, {"rule": "costliest family, with the least a and the largest B_0 of any"})
    found["fine-tuning"] = (_fine_tuning_law(), _FINE_TUNING_SOURCE)
    return found


def _fine_tuning() -> list[FinishedRun]:
    """The published runs; 12 blocks, all of which may freeze, before the head."""
    shares = [k / 12 for k in range(13)]
    return [
        FinishedRun(
            history=phases_of(schedule_levels(PipeTransformer(units=12, alpha=alpha), 10), shares),
            loss_points=100 * (_FINE_TUNING_BASE - accuracy),
        )
        for alpha, accuracy in _FINE_TUNING
    ]


def _fine_tuning_law() -> DebtLaw:
    whole, tail = DebtLaw(a=2, A=1, c=3, B_0=0), DebtLaw(a=2, A=0, c=3, B_0=0.3)
    lacking = [
        (run.loss_points + 0.1 - tail.history_points(run.history)) / whole.history_points(run.history)
        for run in _fine_tuning()
    ]
    return DebtLaw(a=2, A=float(np.ceil(10 * max(lacking)) / 10), c=3, B_0=0.3)


def curves() -> list[dict[str, Any]]:
    """Shipped entries of the measured tasks: the mean losses of all seeds, made monotone from above."""
    entries = []
    for task in TASKS:
        runs = [run for run in _runs(task) if run.level]
        starts = sorted({run.start for run in runs})
        levels = sorted({run.level for run in runs})
        cells = [[_cell(runs, start, level) for level in levels] for start in starts]
        table = np.maximum.accumulate(np.array([[max(mean, 0.0) for mean, _ in row] for row in cells]), axis=1)
        table = np.maximum.accumulate(table[::-1], axis=0)[::-1]
        spread = [(mean, deviation) for row in cells for mean, deviation in row]
        surface = {
            "shares": [_digits(task.shares[level]) for level in levels],
            "starts": [_digits(start) for start in starts],
            "table": [[float(f"{x:.3f}") for x in row] for row in table],
        }
        MeasuredLoss(**surface)
        entries.append(
            {
                "name": task.name,
                "form": "measured",
                "surface": surface,
                "noise_points": float(f"{np.median([d for mean, d in spread if mean < 0.5]):.2f}"),
                "noise_share": float(f"{np.median([d / mean for mean, d in spread if mean >= 1]):.2f}"),
                "source": {"tables": f"{task.table}: {task.what}, {len(_seeds(task))} seeds", "command": _COMMAND},
            }
        )
    return [*entries, _fine_tuning_curve()]


def _cell(runs: Sequence[Measured], start: float, level: int) -> tuple[float, float]:
    losses = [run.loss_points for run in runs if run.start == start and run.level == level]
    return float(np.mean(losses)), float(np.std(losses, ddof=1))


def _fine_tuning_curve() -> dict[str, Any]:
    """The published runs by least squares, not from above; the noise is that of the published repetitions."""
    whole = DebtLaw(a=2, A=1, c=5, B_0=0)
    parts = np.array([whole.history_points(run.history) for run in _fine_tuning()])
    losses = np.array([run.loss_points for run in _fine_tuning()])
    surface = {"a": 2, "A": _digits(float(parts @ losses / (parts @ parts))), "c": 5, "B_0": 0.05}
    ExponentialLoss(**surface)
    source = {"tables": _FINE_TUNING_SOURCE["tables"], "rule": "a = 2, c = 5 and B_0 assumed; least squares for A"}
    return {
        "name": "vit-fine-tuning",
        "form": "exponential",
        "surface": surface,
        "noise_points": 0.07,
        "noise_share": 0.0,
        "source": source,
    }


def _seeds(task: Task) -> list[int]:
    return sorted({run.seed for run in _runs(task)})


def _report(fits: dict[str, DebtLaw]) -> list[str]:
    return [*_law_table(fits), "", *_schedule_table(fits), "", *_budget_table(fits)]


def _law_table(fits: dict[str, DebtLaw]) -> list[str]:
    head = ["task", "seeds", "runs", "a", "A", "c", "B_0", "runs below, %", "left-out seeds below, %", "x = 1 from 0.2"]
    lines = [
        f"Laws of the tasks at quantile {_QUANTILE} of single runs; left-out seeds are judged by a fit to the others."
    ]
    lines += ["", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for task in TASKS:
        law, runs = fits[task.name], _finished(task)
        cells = [task.name, len(_seeds(task)), len(runs), law.a, law.A, law.c, law.B_0]
        cells += [f"{_below(law, runs):.0f}", f"{_left_out(task):.0f}", f"{law.debt_points(1, 0.2, 1):.2f}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def _below(law: DebtLaw, runs: Sequence[FinishedRun]) -> float:
    return 100 * float(np.mean([run.loss_points <= law.history_points(run.history) for run in runs]))


def _left_out(task: Task) -> float:
    shares = []
    for seed in _seeds(task):
        law = _fit(_finished(task, lambda run, seed=seed: run.seed != seed))
        shares.append(_below(law, _finished(task, lambda run, seed=seed: run.seed == seed)))
    return float(np.mean(shares))


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A schedule that was trained with fresh seeds: levels of its epochs, and its realised loss."""

    name: str
    levels: tuple[int, ...]
    least_squares_points: float
    loss_points: float
    deviation: float
    seeds: int


@cache
def _scheduled() -> tuple[Scheduled, ...]:
    with (_folder() / "validate_sched.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            Scheduled(
                row["schedule"],
                tuple(map(int, row["levels"].split("-"))),
                float(row["pred_loss_pp"]),
                float(row["real_loss_pp_mean"]),
                float(row["real_loss_pp_std"]),
                int(row["n_seeds"]),
            )
            for row in csv.DictReader(file)
        )


def verdict(predicted: Sequence[float], rows: Sequence[Scheduled]) -> tuple[float, float, float]:
    """Largest excess of a realised loss over its prediction, mean of prediction minus loss, and rank correlation."""
    from scipy.stats import spearmanr

    losses = np.array([row.loss_points for row in rows])
    ranks = float(spearmanr(predicted, losses).statistic)
    return float((losses - predicted).max()), float((predicted - losses).mean()), ranks


def predictions(fits: dict[str, DebtLaw]) -> dict[str, list[float]]:
    """Debt of the schedules by the task's own law, which is its family's prior, and by others."""
    prior = priors(fits)["unknown"][0]
    by_law = {f"law of {TASKS[0].name}": _debts(fits[TASKS[0].name]), "prior unknown": _debts(prior)}
    return by_law | {"least squares": [row.least_squares_points for row in _scheduled()]}


def _debts(law: DebtLaw) -> list[float]:
    return [law.history_points(phases_of(row.levels, TASKS[0].shares)) for row in _scheduled()]


def _schedule_table(fits: dict[str, DebtLaw]) -> list[str]:
    by_law, rows = predictions(fits), _scheduled()
    lines = [f"Schedules of {TASKS[0].name} trained with {rows[0].seeds} fresh seeds; losses and debts in points."]
    lines += ["", f"| schedule | realised, mean (sd) | {' | '.join(by_law)} |", "|---|---|" + "---|" * len(by_law)]
    for number, row in enumerate(rows):
        debts = " | ".join(f"{values[number]:.2f}" for values in by_law.values())
        lines.append(f"| {row.name} | {row.loss_points:.2f} ({row.deviation:.2f}) | {debts} |")
    other = {f"law at quantile {q}": _debts(fit_law(_finished(TASKS[0]), q)) for q in (0.5, 0.7, 0.8)}
    lines += [
        "",
        "| debt by | largest loss - debt | mean debt - loss | rank correlation | passed |",
        "|---|---|---|---|---|",
    ]
    return lines + [_verdict_row(name, values) for name, values in (by_law | other).items()]


def _verdict_row(name: str, values: Sequence[float]) -> str:
    rows = {row.levels: (value, row) for value, row in zip(values, _scheduled(), strict=True)}
    excess, over, ranks = verdict([value for value, _ in rows.values()], [row for _, row in rows.values()])
    passed = "yes" if excess <= _SLACK_POINTS and ranks >= 0.9 else "no"
    return f"| {name} | {excess:.2f} | {over:.2f} | {ranks:.3f} | {passed} |"


def _budget_table(fits: dict[str, DebtLaw]) -> list[str]:
    """What is planned under a budget, and what the same schedule realised where it is among the trained ones."""
    task = TASKS[0]
    trained = {row.levels: row for row in _scheduled()}
    lines = [
        "Fastest schedules of 15 epochs under a budget, planned with the law; all but the head takes 0.33 of a step."
    ]
    lines += ["", "| budget | levels by epoch | debt | time | realised, mean (sd) |", "|---|---|---|---|---|"]
    times = [0.33 + 0.67 * (1 - k / 7) for k in range(8)]
    for budget in _BUDGETS_POINTS:
        terms = FreezeTerms(
            shares=task.shares, law=fits[task.name], quality_budget_points=budget, phases=12, change_cost_s=0.0
        )
        plan = freeze_trajectory(terms, FreezeState(), times)
        levels = (0, 0, 0, *plan.levels[1:])  # the warm-up is the first three epochs
        row = trained.get(levels)
        realised = "not trained" if row is None else f"{row.loss_points:.2f} ({row.deviation:.2f})"
        shown = "-".join(map(str, levels))
        lines.append(f"| {budget} | {shown} | {plan.debt_points:.2f} | {plan.time_s:.3f} | {realised} |")
    return lines


def write(fits: dict[str, DebtLaw], lines: Sequence[str]) -> None:
    """Rewrite the shipped figures and the tables of the docs."""
    laws = []
    for family, (law, source) in priors(fits).items():
        figures = {name: getattr(law, name) for name in ("a", "A", "c", "B_0", "warm_up")}
        stamp = {"date": date.today().isoformat(), "command": _COMMAND}
        laws.append({"family": family, "law": figures, "source": source | stamp})
    _dump("priors", {"priors": laws})
    _dump("curves", {"curves": curves()})
    before, _, rest = _DOCS.read_text("utf-8").partition(_MARK)
    after = rest.partition(_MARK)[2]
    tables = "\n".join(lines)
    _DOCS.write_text(f"{before}{_MARK}\n\n{tables}\n\n{_MARK}{after}", encoding="utf-8")


def _dump(name: str, content: dict[str, Any]) -> None:
    document = {"format": f"frostline/freezing-{name}", "version": 1} | content
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    (_FREEZING / f"{name}.json").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite the shipped figures and the tables of the docs")
    arguments = parser.parse_args()
    fits = _fits()
    lines = _report(fits)
    print("\n".join(lines))
    if arguments.write:
        write(fits, lines)


if __name__ == "__main__":
    main()
