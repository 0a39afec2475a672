"""Steps per second of the jobs in Gavel's traces: prints them, and with ``--write`` puts them into the package.

The traces of ten fields count steps by Gavel's throughputs on V100 GPUs. Those of seven fields, made from Philly, count
them by throughputs that are not published: the steps of a job are its run time in Philly times a rate of its model,
rounded down. Jobs that are the only ones of their arrival and GPUs in Philly give an interval for that rate each; the
rate is the middle of what most intervals of a model agree on.
"""

from __future__ import annotations

import argparse
import ast
import csv
import gzip
import json
from collections import defaultdict
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from public_traces import TRACES

TARGET = Path(__file__).parents[1] / "solver/frostline/traces/gavel_rates.json"
SOURCE = {
    "v100": (
        "github.com/stanford-futuredata/gavel c4fa400, scheduler/simulation_throughputs.json: v100, jobs alone on GPUs "
        "of one server; MIT License, Copyright (c) 2020 Stanford Future Data Systems"
    ),
    "philly": "total_steps of traces/msr/seed=0 there over the run times of the same jobs in Philly (CC BY 4.0)",
    "command": "python benchmarks/gavel_rates.py --write",
}


def v100_rates(folder: Path) -> dict[str, dict[str, float]]:
    """Steps per second by job type and GPUs."""
    with gzip.open(folder / "gavel-osdi20/simulation_throughputs.json.gz", "rt", encoding="utf-8") as file:
        table = json.load(file)["v100"]
    rates: dict[str, dict[str, float]] = defaultdict(dict)
    for key, value in table.items():
        job_type, gpus = ast.literal_eval(key)
        rates[job_type][str(gpus)] = value["null"]
    return {job_type: dict(sorted(by_gpus.items())) for job_type, by_gpus in sorted(rates.items())}


def philly_pairs(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Steps in Gavel's traces and seconds in Philly of jobs that are in both, by job type."""
    philly: dict[str, list[tuple[float, int, float]]] = defaultdict(list)
    with gzip.open(folder / "philly-2017/philly.csv.gz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            stamp = datetime.fromisoformat(row["timestamp"]) - datetime(2017, 1, 1)
            philly[row["cluster"]].append((stamp.total_seconds(), int(row["num_gpus"]), float(row["duration"])))
    pairs: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for path in sorted((folder / "gavel-osdi20/msr-seed0").glob("*.trace.gz")):
        jobs = philly[path.name.split(".")[0]]
        first_s = min(submit_s for submit_s, _, _ in jobs)
        known: dict[tuple[float, int], list[float]] = defaultdict(list)
        for submit_s, gpus, duration_s in jobs:
            known[submit_s - first_s, gpus].append(duration_s)
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                job_type, _, _, _, steps, arrival_s, gpus_held = line.rstrip("\n").split("\t")
                if len(same := known.get((float(arrival_s), int(gpus_held)), [])) == 1:
                    pairs[job_type].append((int(steps), same[0]))
    return pairs


def agreed_rate(pairs: list[tuple[int, float]]) -> tuple[float, int]:
    """Middle of the rates that give most of the pairs, and how many those are."""
    ends = sorted([(steps / s, 1) for steps, s in pairs] + [((steps + 1) / s, -1) for steps, s in pairs])
    best = count = 0
    middle = 0.0
    for (rate, change), (following, _) in pairwise(ends):
        count += change
        if count > best:
            best, middle = count, (rate + following) / 2
    return float(f"{middle:.10g}"), best


def main() -> None:
    """Print the rates, and write them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    philly = {}
    for job_type, pairs in sorted(philly_pairs(TRACES).items()):
        philly[job_type], agreeing = agreed_rate(pairs)
        print(f"{job_type}: {philly[job_type]} steps/s, {agreeing} of {len(pairs)} jobs")
    if write:
        document = {"format": "frostline/gavel-rates", "version": 1, "source": SOURCE, "philly": philly}
        TARGET.write_text(json.dumps(document | {"v100": v100_rates(TRACES)}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
