"""Public traces, read from the folder that FROSTLINE_SHARED names."""

from __future__ import annotations

import os
from pathlib import Path

from frostline.problem import Job
from frostline.traces import read_trace

_TRACES = Path(os.environ.get("FROSTLINE_SHARED", "../shared")) / "data" / "traces"


def oracle(name: str) -> tuple[Job, ...]:
    """Jobs of a trace whose answer independent simulators agree on."""
    return read_trace(_TRACES / "oracles" / f"{name}.csv.gz").jobs


def philly() -> tuple[Job, ...]:
    """Jobs of the Philly trace that have a duration."""
    return read_trace(_TRACES / "philly-2017" / "philly.csv.gz", mode="repair").jobs


def itp(cluster: str) -> tuple[Job, ...]:
    """Jobs of one cluster of the ITP trace."""
    return read_trace(_TRACES / "itp-2021" / f"cluster{cluster}.csv.gz").jobs
