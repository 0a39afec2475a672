"""Replays of size models: scores as plain JSON values and as a table, predictions as CSV, calibration as numbers."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from frostline.prediction.replay import ReplayResult
from frostline.prediction.scores import DISTORTION_SHARES
from frostline.problem.job import Fixed, Job
from frostline.report.numbers import number_text, percent_text
from frostline.report.table import Table

__all__ = [
    "PREDICTION_COLUMNS",
    "calibration_by_size",
    "finish_text",
    "predictions_csv",
    "replay_lines",
    "replay_summary",
    "replay_table",
    "size_unit",
]

PREDICTION_COLUMNS = ("model", "job", "unit", "predicted", "low", "high", "actual", "cold_start", "source")
"""Columns of :func:`predictions_csv`."""

Row = Mapping[str, Any]
Floats = npt.NDArray[np.float64]

_JOBS_PER_PART = 5
_SHARES = tuple(reversed(DISTORTION_SHARES))


def replay_summary(text: str, result: ReplayResult) -> dict[str, Any]:
    """Scores of one model as plain JSON values, with stable keys.

    Parameters
    ----------
    text : str
        The model as it was asked for.
    result : ReplayResult
        What its replay gave.

    Examples
    --------
    >>> from frostline.prediction import replay
    >>> jobs = [Job(id=i, release_s=t, work=Fixed(duration_s=9), gpus=1, user="u") for i, t in (("a", 0), ("b", 10))]
    >>> row = replay_summary("median", replay(jobs, ["median"])[0])
    >>> row["jobs"], row["cold_start_share"], row["distortion"]["0"]["D"], row["sources"]
    (2, 0.5, 400.0, {'default': 1, 'median: user+gpus': 1})
    """
    statistics = result.statistics
    return {
        **result.as_dict(),
        "model": text,
        "fallbacks": statistics.fallbacks,
        "learned": statistics.learned,
        "dropped_targets": statistics.dropped_targets,
        "sources": dict(sorted(Counter(result.sources).items())),
    }


def replay_table(rows: Iterable[Row]) -> Table:
    """Table of models: errors, calibration, cold starts, distortion of a share of the jobs, time.

    Examples
    --------
    >>> row = {"model": "median", "median_abs_log_ratio": 0.25, "share_within_2x": 0.75, "coverage": 0.8,
    ...        "cold_start_share": 0.0, "distortion": {}, "seconds_per_prediction": 2e-5}
    >>> print(replay_table([row]).transposed().text())
    model             median
    median |ln ratio|   0.25
    within 2x         75.0 %
    coverage          80.0 %
    cold start         0.0 %
    D of 80 %              -
    D of 90 %              -
    D of 98 %              -
    D of all               -
    µs/job                20
    """
    header = ["model", "median |ln ratio|", "within 2x", "coverage", "cold start"]
    header += [f"D of {'all' if not share else f'{1 - 2 * share:.0%}'.replace('%', ' %')}" for share in _SHARES]
    return Table([*header, "µs/job"], map(_cells, rows))


def _cells(row: Row) -> Sequence[str]:
    shares, distortion = ("share_within_2x", "coverage", "cold_start_share"), row["distortion"]
    bounds = [distortion.get(f"{share:g}") for share in _SHARES]
    time_s = row["seconds_per_prediction"]
    return (
        row["model"],
        number_text(row["median_abs_log_ratio"]),
        *(percent_text(row[name]) for name in shares),
        *(number_text(None if found is None else found["D"]) for found in bounds),
        number_text(None if time_s is None else 1e6 * time_s),
    )


def replay_lines() -> list[str]:
    """What the columns of :func:`replay_table` mean, for people."""
    return [
        "ratio: predicted median over actual size; coverage: sizes from the low to the high quantile, 80 % is aimed at",
        "D: b / a, where that share of the ratios lies from a to b and as many lie below as above",
    ]


def finish_text(starts_known: int, jobs: int) -> str:
    """Sentence on how it was told when jobs finish.

    Examples
    --------
    >>> print(finish_text(2, 3))
    a job finishes its duration after its start; the start is known of 2 of 3 jobs, the others are taken to start at
    their release, so they may count as finished too early
    """
    if jobs and starts_known == jobs:
        return f"a job finishes its duration after its start, which is known of all {jobs:,} jobs"
    if not starts_known:
        return "no start is known: a job is taken to start at its release, so it may count as finished too early"
    return (
        f"a job finishes its duration after its start; the start is known of {starts_known:,} of {jobs:,} jobs, "
        "the others are taken to start at their release, so they may count as finished too early"
    )


def size_unit(jobs: Iterable[Job]) -> str:
    """Unit of the sizes of jobs.

    Examples
    --------
    >>> size_unit([Job(id="a", release_s=0, work=Fixed(duration_s=9), gpus=1)])
    's'
    """
    return " or ".join(sorted({_unit(job) for job in jobs}, reverse=True)) or "s"


def _unit(job: Job) -> str:
    return "s" if isinstance(job.work, Fixed) else "iterations"


def predictions_csv(results: Mapping[str, ReplayResult], jobs: Iterable[Job]) -> str:
    """What every model said of every job when it was submitted, one line each.

    Parameters
    ----------
    results : mapping of str to ReplayResult
        Replays by the text that asked for the model.
    jobs : iterable of Job
        The jobs.

    Examples
    --------
    >>> from frostline.prediction import replay
    >>> jobs = [Job(id="a", release_s=0, work=Fixed(duration_s=9), gpus=1)]
    >>> print(predictions_csv({"median": replay(jobs, ["median"])[0]}, jobs), end="")
    model,job,unit,predicted,low,high,actual,cold_start,source
    median,a,s,3600.0,3600.0,3600.0,9.0,true,default
    """
    units = {job.id: _unit(job) for job in jobs}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(PREDICTION_COLUMNS)
    for model, result in results.items():
        numbers = zip(*(column.tolist() for column in _numbers(result)), strict=True)
        for job, values, cold, source in zip(
            result.jobs, numbers, result.cold_start.tolist(), result.sources, strict=True
        ):
            writer.writerow([model, job, units[job], *values, str(cold).lower(), source])
    return text.getvalue()


def _numbers(result: ReplayResult) -> tuple[Floats, Floats, Floats, Floats]:
    return result.predicted, result.low, result.high, result.actual


def calibration_by_size(result: ReplayResult, parts: int = 10) -> tuple[Floats, Floats]:
    """How often a size was not above a quantile of its prediction, by the size that was predicted.

    Parameters
    ----------
    result : ReplayResult
        The replay.
    parts : int
        Equally large parts that the jobs are divided into, from small to large predictions; fewer where there would
        be less than 5 jobs in a part.

    Returns
    -------
    ndarray of float, shape (parts,)
        Middle of each part, as a share of the jobs.
    ndarray of float, shape (3, parts)
        Shares of sizes not above the low quantile, the median and the high quantile; 0.1, 0.5 and 0.9 are aimed at.

    Examples
    --------
    >>> from frostline.prediction import replay
    >>> jobs = [Job(id=str(i), release_s=9 * i, work=Fixed(duration_s=8 - i % 2), gpus=1) for i in range(10)]
    >>> middle, shares = calibration_by_size(replay(jobs, ["median"])[0])
    >>> middle.tolist(), shares.tolist()
    ([0.25, 0.75], [[0.2, 1.0], [0.2, 1.0], [1.0, 1.0]])
    """
    count = len(result.jobs)
    parts = max(1, min(parts, count // _JOBS_PER_PART))
    order = np.argsort(result.predicted, kind="stable")
    groups = np.array_split(order, parts)
    quantiles = (result.low, result.predicted, result.high)
    shares = [[np.mean(result.actual[group] <= quantile[group]) for group in groups] for quantile in quantiles]
    return (np.arange(parts) + 0.5) / parts, np.array(shares, np.float64)
