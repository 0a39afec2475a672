"""Public traces, read from the folder that FROSTLINE_SHARED names."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Literal

from frostline.problem import Job
from frostline.traces import Trace, in_order, read_trace

TRACES = Path(os.environ.get("FROSTLINE_SHARED", "../shared")) / "data" / "traces"
_HASHES: dict[str, str] = {}


def oracle(name: str) -> tuple[Job, ...]:
    """Jobs of a trace whose answer independent simulators agree on."""
    return _jobs(TRACES / "oracles" / f"{name}.csv.gz")


def philly() -> tuple[Job, ...]:
    """Jobs of the Philly trace that have a duration."""
    return _jobs(TRACES / "philly-2017" / "philly.csv.gz", mode="repair")


def itp(cluster: str) -> tuple[Job, ...]:
    """Jobs of one cluster of the ITP trace."""
    return _jobs(TRACES / "itp-2021" / f"cluster{cluster}.csv.gz")


def itp_pooled() -> tuple[Job, ...]:
    """Jobs of all clusters of the ITP trace, the cluster as their group, on one clock."""
    jobs = (
        job.replace(id=f"{cluster:02d}-{job.id}", group=f"{cluster:02d}")
        for cluster in range(1, 11)
        for job in _trace(TRACES / "itp-2021" / f"cluster{cluster:02d}.csv.gz", rebase=False).jobs
    )
    return in_order(jobs)


def eagle() -> Trace:
    """The sample of the NREL Eagle log, with the starts of its jobs."""
    return _trace(TRACES / "nrel-eagle-2019" / "sample_eagle_data.csv.gz")


def hashes() -> str:
    """The traces that were read so far, each with the hash of its file."""
    return ", ".join(f"{name} sha256 {value[:16]}" for name, value in _HASHES.items())


def _jobs(path: Path, mode: Literal["strict", "repair"] = "strict") -> tuple[Job, ...]:
    return _trace(path, mode).jobs


def _trace(path: Path, mode: Literal["strict", "repair"] = "strict", rebase: bool = True) -> Trace:
    trace = read_trace(path, mode=mode, rebase=rebase)
    _HASHES[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return trace
