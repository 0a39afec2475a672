"""Options that several commands share, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from frostline.cli.config import apply_config

__all__ = [
    "ClusterOption",
    "ConfigOption",
    "DuplicatesOption",
    "FormatOption",
    "FractionsOption",
    "FreeOption",
    "GlobalBatchOption",
    "GpuTypeOption",
    "GpusOption",
    "InstanceOption",
    "JobsOption",
    "JsonOption",
    "LoadOption",
    "LocalityOption",
    "MicroBatchesOption",
    "ModeOption",
    "ModelArgument",
    "NicOption",
    "NvlinkOption",
    "PoolOption",
    "PrecisionOption",
    "QuietOption",
    "ReplicaGpusOption",
    "ReplicasOption",
    "SeedOption",
    "ServersOption",
    "StagesOption",
    "TimeLimitOption",
    "TimeUnitOption",
    "UtilisationOption",
    "ZoneOption",
    "examples",
    "mode_of",
    "number",
    "whole_number",
]


def whole_number(text: object) -> int:
    """Value of an option that takes a whole number; a usage error that gives the text where it is none.

    Examples
    --------
    >>> whole_number("12")
    12
    """
    try:
        return int(str(text))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a whole number") from None


def number(text: object) -> float:
    """Value of an option that takes a number; a usage error that gives the text where it is none.

    Examples
    --------
    >>> number("0.9")
    0.9
    """
    try:
        return float(str(text))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number") from None


JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print the result only: no remarks, no progress.")]
InstanceOption = Annotated[
    str | None,
    typer.Option(
        "--instance",
        metavar="FILE",
        help="Instance of the schedules, or the name of a shipped one; by default instance.json.gz beside them.",
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE.toml",
        is_eager=True,
        callback=apply_config,
        help="Take options from the table of this command; what is typed here wins.",
    ),
]
ClusterOption = Annotated[
    str | None, typer.Option("--cluster", metavar="SERVERSxGPUS|FILE", help="Servers, such as 128x8, or a JSON file.")
]
PoolOption = Annotated[
    int | None,
    typer.Option(
        "--pool", parser=whole_number, metavar="N", help="One pool of N GPUs without servers, in place of a cluster."
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", help="Format of the trace (frostline list formats); by default guessed."),
]
ModeOption = Annotated[
    bool | None,
    typer.Option("--strict/--repair", help="Refuse a trace with bad rows, or fix and drop them by rule, counted."),
]
TimeUnitOption = Annotated[
    str | None,
    typer.Option("--time-unit", metavar="s|ms|min", help="Unit of times in the trace; by default that of the format."),
]
ZoneOption = Annotated[
    str | None,
    typer.Option("--zone", metavar="NAME", help="Zone of timestamps without offset, such as America/Los_Angeles."),
]
DuplicatesOption = Annotated[
    str | None,
    typer.Option(
        "--duplicates", metavar="keep|drop", help="Rows of a trace that equal an earlier one; by default keep."
    ),
]
FractionsOption = Annotated[
    str | None,
    typer.Option(
        "--fractions",
        metavar="ceil_total|ceil_per_instance",
        help="Where --repair rounds fractions of GPUs up: over all instances of a task, by default, or in each.",
    ),
]
LocalityOption = Annotated[
    str | None,
    typer.Option("--locality", metavar="any|server|fewest", help="GPUs that will do for a job, for all jobs."),
]
LoadOption = Annotated[
    float | None,
    typer.Option("--load", parser=number, metavar="X", help="Stretch the time between jobs to this offered load."),
]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", parser=whole_number, metavar="N", help="Take the first N jobs only.")
]
SeedOption = Annotated[
    int, typer.Option("--seed", parser=whole_number, metavar="S", help="Seed of all random choices.")
]
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="Network file or name (frostline list models).")]
ServersOption = Annotated[
    str, typer.Option("--cluster", metavar="SERVERSxGPUS|FILE", help="Servers, such as 4x8, or a JSON file.")
]
StagesOption = Annotated[
    int | None,
    typer.Option("--stages", parser=whole_number, metavar="N", help="Contiguous stages of balanced compute."),
]
ReplicasOption = Annotated[str | None, typer.Option("--replicas", metavar="A,B,...", help="Replicas of each stage.")]
ReplicaGpusOption = Annotated[
    str | None,
    typer.Option(
        "--gpus-per-replica", metavar="A,B,...", help="GPUs of each replica, all in one server; one number for all."
    ),
]
GpusOption = Annotated[
    int | None,
    typer.Option(
        "--gpus", parser=whole_number, metavar="N", help="GPUs to spread over the stages, in place of --replicas."
    ),
]
FreeOption = Annotated[
    str | None, typer.Option("--free", metavar="A,B,...", help="Free GPUs by server; by default all.")
]
TimeLimitOption = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        parser=number,
        metavar="SECONDS",
        help="When a search stops with the best so far; without, auto stops after local search.",
    ),
]
GlobalBatchOption = Annotated[
    int | None,
    typer.Option(
        "--global-batch", parser=whole_number, metavar="N", help="Samples per iteration; by default 32 per GPU."
    ),
]
MicroBatchesOption = Annotated[
    int,
    typer.Option("--micro-batches", parser=whole_number, metavar="N", help="Micro-batches that fill the pipeline."),
]
PrecisionOption = Annotated[str, typer.Option("--precision", metavar="NAME", help="fp32, tf32, fp16 or bf16.")]
UtilisationOption = Annotated[
    float,
    typer.Option("--utilisation", parser=number, metavar="X", help="Share of the peak FLOPs that a GPU reaches."),
]
GpuTypeOption = Annotated[
    str | None, typer.Option("--gpu-type", metavar="NAME", help="GPU type of SERVERSxGPUS (frostline list gpus).")
]
NicOption = Annotated[str | None, typer.Option("--nic", metavar="25GB/s", help="Network card of each server, one way.")]
NvlinkOption = Annotated[
    str | None, typer.Option("--nvlink", metavar="300GB/s", help="Bandwidth between GPUs of a server, one way.")
]


def examples(*lines: str) -> str:
    """Closing lines of a command's help."""
    return "\n".join(["\b", "Examples:", *(f"  frostline {line}" for line in lines)])


def mode_of(strict: bool | None) -> Literal["strict", "repair"] | None:
    """Mode of reading that ``--strict`` or ``--repair`` asks for; None for neither.

    Examples
    --------
    >>> mode_of(None), mode_of(False)
    (None, 'repair')
    """
    if strict is None:
        return None
    return "strict" if strict else "repair"
