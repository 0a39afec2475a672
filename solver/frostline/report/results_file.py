"""What ``simulate`` has written down of its outcomes, read back: every figure is checked before it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from frostline.errors import FileError
from frostline.problem.documents import read_document

__all__ = ["Results", "read_results"]

Spec = Mapping[str, "Callable[[object], bool] | Spec"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Outcomes of a simulation as plain JSON values.

    Parameters
    ----------
    trace : mapping
        Summary of the trace, as :func:`~frostline.report.workload.trace_summary` gives it.
    rows : list of mapping
        Outcomes by policy, as :func:`~frostline.report.simulation.result_summary` gives them.
    """

    trace: Mapping[str, Any]
    rows: list[dict[str, Any]]


def read_results(path: Path) -> Results:
    """Outcomes of the summary of a folder that ``simulate --out`` wrote.

    Raises
    ------
    FileError
        The file cannot be read, or something that is shown of it is missing or of the wrong type.
    """
    _, data = read_document(path, ["simulate"])
    _check(data, _SUMMARY, "$", path)
    for i, row in enumerate(data["results"]):
        if not isinstance(row, dict):
            raise FileError(path, f"$.results[{i}]: {row!r} must be an object")
        _check(row, _ROW, f"$.results[{i}]", path)
        if "outages" in row:
            _check(row, _OUTAGES, f"$.results[{i}]", path)
    return Results(trace=data["trace"], rows=data["results"])


def _check(data: Mapping[str, Any], spec: Spec, at: str, path: Path) -> None:
    """Check the members of an object; those whose name ends in a question mark may be missing or null."""
    for key, wanted in spec.items():
        name, optional = key.removesuffix("?"), key.endswith("?")
        value = data.get(name)
        if value is None and (optional or name not in data):
            if optional:
                continue
            raise FileError(path, f"{at}.{name}: is missing")
        if callable(wanted):
            if not wanted(value):
                raise FileError(path, f"{at}.{name}: {value!r} is nothing that simulate writes there")
        elif not isinstance(value, dict):
            raise FileError(path, f"{at}.{name}: {value!r} must be an object")
        else:
            _check(value, wanted, f"{at}.{name}", path)


def _number(value: object) -> bool:
    return (type(value) is int and abs(value) < 10**300) or (type(value) is float and isfinite(value))


def _whole(value: object) -> bool:
    return type(value) is int and 0 <= value < 10**15


def _text(value: object) -> bool:
    return isinstance(value, str)


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _counts(value: object) -> bool:
    return isinstance(value, dict) and all(map(_whole, value.values()))


def _parameters(value: object) -> bool:
    return isinstance(value, dict) and all(_number(one) or _text(one) or _flag(one) for one in value.values())


_TRACE: Spec = {
    **dict.fromkeys(("rows_read", "rows_kept", "jobs", "peak_busy_gpus"), _whole),
    **dict.fromkeys(("dropped", "repaired"), _counts),
    **dict.fromkeys(("span_s", "gpu_hours", "load?", "median_overestimate?"), _number),
    **dict.fromkeys(("gpus?", "estimates?"), _whole),
    **dict.fromkeys(("format?", "mode?"), _text),
    "warnings?": _texts,
}
_SUMMARY: Spec = {"trace": _TRACE, "results": lambda value: isinstance(value, list)}
_GUARANTEE: Spec = {
    "form": _text,
    "parameters": _parameters,
    "holds": _flag,
    "worst_slack_s?": _number,
    "worst_job?": _text,
}
_PREDICTION: Spec = {
    "predictor": _text,
    **dict.fromkeys(("jobs", "overruns", "repredictions"), _whole),
    **dict.fromkeys(("cold_start_share?", "a?", "b?", "D?"), _number),
}
_ACCURACY: Spec = {
    **dict.fromkeys(("jobs", "frozen"), _whole),
    **dict.fromkeys(("mean_lost_points", "mean_believed_points", "max_lost_points", "over_budget_share"), _number),
}
_FLOWS = ("mean_flow_s?", "median_flow_s?", "p99_flow_s?", "max_flow_s?", "mean_wait_s?", "makespan_s?")
_ROW: Spec = {
    **dict.fromkeys(("policy", "bound_method", "bound_choices"), _text),
    **dict.fromkeys(("submitted", "jobs", "refused", "unfinished", "evictions", "level_changes", "faults"), _whole),
    **dict.fromkeys((*_FLOWS, "utilisation?", "bound_mean_flow_s?", "flow_over_bound?"), _number),
    "guarantee?": _GUARANTEE,
    "prediction?": _PREDICTION,
    "accuracy?": _ACCURACY,
    "valid": _flag,
}
_OUTAGES: Spec = {
    **dict.fromkeys(("outages", "failed_runs"), _whole),
    "lost_gpu_hours": _number,
    "unfinished_jobs": _texts,
}
