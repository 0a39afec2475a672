"""The freeze menu of a job: what each level takes and costs, and which one is best now."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from frostline.errors import InvalidValueError
from frostline.freezing import DebtLaw, FreezeRow, FreezeState, FreezeTerms, Trajectory, choose_level
from frostline.freezing.progress import effective_progress
from frostline.problem.cluster import Cluster
from frostline.report.numbers import bytes_text, number_text
from frostline.report.table import Table
from frostline.units import as_finite

__all__ = [
    "FreezeAdvice",
    "advice_lines",
    "advice_summary",
    "freeze_advice",
    "freeze_remarks",
    "freeze_table",
    "level_summary",
]

_SUBJECT = "freeze advice"
_CLOSE = 1e-9  # progress at which the warm-up is as good as over


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeAdvice:
    """A freeze menu, what its levels cost in accuracy, and the fastest plan; :func:`freeze_advice` makes it.

    Parameters
    ----------
    rows : tuple of FreezeRow
        The menu, level 0 first.
    law : DebtLaw
        Accuracy debt, as it is believed.
    budget_points : float
        Percentage points of final accuracy that freezing may cost from now on.
    progress : float
        Share of the training that is done.
    global_batch : int
        Samples per iteration.
    plan : Trajectory or None
        Fastest levels for the rest of the training, whose times are those of a training of one iteration; None where
        the job does not fit the memory unless it is frozen, so that nothing can be trained up to the warm-up's end.

    Examples
    --------
    >>> from frostline.freezing import FreezablePlan, debt_prior, freeze_menu
    >>> from frostline.problem import TrainingPlan, shipped_network
    >>> freezable = FreezablePlan.of(TrainingPlan.balanced(shipped_network("resnet50"), 4, stages=1), comm="rebuild")
    >>> rows = freeze_menu(freezable, Cluster.uniform(1))
    >>> advice = freeze_advice(rows, debt_prior("cnn"), budget_points=1.0, progress=0.25, global_batch=128)
    >>> advice.best, [round(rate, 2) for rate in advice.rates_points[:3]]
    (3, [0.0, 0.35, 1.14])
    >>> [(round(start, 2), round(end, 2), level) for start, end, level in advice.phases]
    [(0.25, 0.32, 3), (0.32, 0.36, 7), (0.36, 1.0, 8)]
    """

    rows: tuple[FreezeRow, ...]
    law: DebtLaw
    budget_points: float
    progress: float
    global_batch: int
    plan: Trajectory | None

    @property
    def best(self) -> int | None:
        """Level to train at now: that of the plan."""
        return None if self.plan is None else self.plan.levels[0]

    @property
    def may_freeze(self) -> bool:
        """Whether the warm-up is over."""
        return self.progress >= self.law.warm_up - _CLOSE

    @property
    def rates_points(self) -> tuple[float | None, ...]:
        """Debt per unit of progress at each level, in percentage points; None where nothing may be frozen yet."""
        allowed = self.may_freeze
        return tuple(
            self.law.density_points(row.compute_share, self.progress) if allowed or row.level == 0 else None
            for row in self.rows
        )

    @property
    def speed_ups(self) -> tuple[float | None, ...]:
        """Iteration time of level 0 over that of each level; None where an iteration takes no time."""
        first = self.rows[0].iteration_ns
        return tuple(first / row.iteration_ns if row.iteration_ns else None for row in self.rows)

    @property
    def samples_per_s(self) -> tuple[float | None, ...]:
        """Effective progress at each level: useful samples per second; None where an iteration takes no time."""
        return tuple(
            effective_progress(self.global_batch / row.iteration_s) if row.iteration_ns else None for row in self.rows
        )

    @property
    def phases(self) -> tuple[tuple[float, float, int], ...]:
        """Start, end and level of each phase of the plan, those of one level in a row as one; none without a plan."""
        if self.plan is None:
            return ()
        spans = zip(pairwise(self.plan.boundaries), self.plan.levels, strict=True)
        runs = [(level, [span for span, _ in run]) for level, run in groupby(spans, key=lambda item: item[1])]
        return tuple((spans[0][0], spans[-1][1], level) for level, spans in runs)

    @property
    def rest_speed_up(self) -> float | None:
        """Time of the rest of the training without freezing over that of the plan; None where one takes no time."""
        if self.plan is None or not self.plan.time_s:
            return None
        return 1.0 if not any(self.plan.levels) else self.rows[0].iteration_s * (1 - self.progress) / self.plan.time_s


def freeze_advice(
    rows: Sequence[FreezeRow], law: DebtLaw, *, budget_points: float, progress: float, global_batch: int
) -> FreezeAdvice:
    """The best level of a menu now: the one at which the fastest plan for the rest of the training begins.

    The plan is the exact trajectory (:func:`~frostline.freezing.choose_level`) over the levels that fit the memory: the
    least time of all whose debt stays within the budget, for a fixed number of steps. A change of level costs nothing
    in it, nor does a move where the levels are placed apart.

    Parameters
    ----------
    rows : sequence of FreezeRow
        The menu, level 0 first.
    law : DebtLaw
        Accuracy debt; before its warm-up ends nothing is frozen.
    budget_points : float
        Percentage points of final accuracy that freezing may cost from now on.
    progress : float
        Share of the training that is done, below 1.
    global_batch : int
        Samples per iteration.

    Raises
    ------
    InvalidValueError
        No rows, or a value out of its bounds.
    """
    if not rows:
        raise InvalidValueError(_SUBJECT, "rows", 0, "must be at least level 0")
    done = as_finite(progress, _SUBJECT, "progress", 0.0, 1.0)
    if done == 1.0:
        raise InvalidValueError(_SUBJECT, "progress", progress, "must be below 1: nothing is left to train")
    return FreezeAdvice(
        rows=tuple(rows),
        law=law,
        budget_points=budget_points,
        progress=done,
        global_batch=global_batch,
        plan=_plan(rows, law, budget_points, done),
    )


def _plan(rows: Sequence[FreezeRow], law: DebtLaw, budget_points: float, progress: float) -> Trajectory | None:
    """Fastest levels among those that fit the memory; None where level 0 does not."""
    fitting = [row for row in rows if row.fits or row.level == 0]
    terms = FreezeTerms(
        shares=tuple(row.compute_share for row in fitting),
        law=law,
        quality_budget_points=budget_points,
        change_cost_s=0.0,
        hysteresis=0.0,
    )
    if not rows[0].fits:
        return None
    plan = choose_level(terms, FreezeState(progress=progress), [row.iteration_s for row in fitting]).plan
    return dataclasses.replace(plan, levels=tuple(fitting[level].level for level in plan.levels))


def level_summary(advice: FreezeAdvice, cluster: Cluster) -> list[dict[str, Any]]:
    """Levels of a menu as plain JSON values, with stable keys: seconds, bytes, FLOPs per sample and points."""
    columns = zip(advice.rows, advice.rates_points, advice.speed_ups, advice.samples_per_s, strict=True)
    return [
        {
            "level": row.level,
            "frozen_units": row.frozen_units,
            "compute_share": row.compute_share,
            "compute_flops": row.compute_flops,
            "gradient_bytes": row.gradient_bytes,
            "iteration_s": row.iteration_s,
            "speed_up": speed_up,
            "penalty": rate,
            "effective_progress_per_s": samples,
            "memory_bytes": row.memory_bytes,
            "fits": row.fits,
            "placement": row.placement.matrix(len(cluster.servers)).tolist(),
        }
        for row, rate, speed_up, samples in columns
    ]


def advice_summary(advice: FreezeAdvice) -> dict[str, Any]:
    """Best level and plan as plain JSON values, with stable keys; None for both where there is no plan."""
    if advice.plan is None:
        return {"best": None, "plan": None}
    phases = [{"start": start, "end": end, "level": level} for start, end, level in advice.phases]
    described = {
        "phases": phases,
        "debt_points": advice.plan.debt_points,
        "speed_up": advice.rest_speed_up,
        "proved_optimal": advice.plan.optimal,
    }
    return {"best": advice.best, "plan": described}


def freeze_table(advice: FreezeAdvice) -> Table:
    """Table of the levels, with a star at the best one.

    Examples
    --------
    >>> from frostline.freezing import FreezablePlan, debt_prior, freeze_menu
    >>> from frostline.problem import TrainingPlan, shipped_network
    >>> freezable = FreezablePlan.of(TrainingPlan.balanced(shipped_network("t5_large"), 4, stages=1), comm="rebuild")
    >>> rows = freeze_menu(freezable, Cluster.uniform(1))
    >>> law = debt_prior("fine-tuning")
    >>> print(freeze_table(freeze_advice(rows, law, budget_points=1, progress=0.5, global_batch=128)).text())
    level  frozen units  GFLOP/sample  gradients  iteration ms  speed-up  debt rate  samples/s    memory  fits  best
    0                 0         1,480   1.475 GB         386.8         1          0      330.9  54.04 GB   yes
    1                 2         510.1    65.8 MB         131.1      2.95      2.375      976.3   1.97 GB   yes
    2                 3         501.6    65.8 MB           129     2.999      2.375      992.6  1.953 GB   yes     *
    """
    header = ["level", "frozen units", "GFLOP/sample", "gradients", "iteration ms", "speed-up"]
    header += ["debt rate", "samples/s", "memory", "fits", "best"]
    columns = zip(advice.rows, advice.rates_points, advice.speed_ups, advice.samples_per_s, strict=True)
    rows = [
        (
            str(row.level),
            str(row.frozen_units),
            number_text(row.compute_flops / 1e9),
            bytes_text(row.gradient_bytes),
            number_text(1000 * row.iteration_s),
            number_text(speed_up),
            number_text(rate),
            number_text(samples),
            bytes_text(row.memory_bytes),
            "yes" if row.fits else "no",
            "*" if row.level == advice.best else "",
        )
        for row, rate, speed_up, samples in columns
    ]
    return Table(header, rows)


def advice_lines(advice: FreezeAdvice) -> list[str]:
    """Lines for people: the best level, and the plan that it belongs to."""
    if advice.plan is None:
        return []
    ends = [*(f"to {number_text(end)}" for _, end, _ in advice.phases[:-1]), "to the end"]
    levels = ", ".join(f"level {level} {end}" for (_, _, level), end in zip(advice.phases, ends, strict=True))
    debt, budget = number_text(advice.plan.debt_points), number_text(advice.budget_points)
    proved = "no plan within the budget is faster" if advice.plan.optimal else "faster ones are not ruled out"
    return [
        f"best at progress {number_text(advice.progress)}: level {advice.best}",
        f"plan: {levels}",
        f"debt {debt} of {budget} points; the rest is {number_text(advice.rest_speed_up)} times as fast as without "
        f"freezing; {proved}",
    ]


def freeze_remarks(advice: FreezeAdvice, family: str) -> list[str]:
    """Remarks on the columns of the table, and on what the best level is."""
    progress = number_text(advice.progress)
    lines = [
        f"debt rate: points of final accuracy per unit of progress, at progress {progress}, prior of family {family}"
        if advice.may_freeze
        else f"nothing may be frozen at progress {progress}: the warm-up ends at {number_text(advice.law.warm_up)}"
    ]
    if advice.plan is not None:
        lines.append("best: the level now on the fastest plan for the rest whose debt stays within the budget")
    anew = [str(row.level) for before, row in pairwise(advice.rows) if row.placement != before.placement]
    if anew:
        lines.append(f"placed anew at level {', '.join(anew)}; what a move costs is not counted")
    return lines
