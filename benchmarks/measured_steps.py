"""Readers of the public tables of step times: Pollux (T4), Titan (V100, A100) and Gavel (V100).

They are read from the folder that FROSTLINE_SHARED names, and only fitted parameters ever leave it.
"""

from __future__ import annotations

import ast
import csv
import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from public_traces import TRACES

CLASSES = ("1 GPU", "one server", "2 servers", "3-4 servers", "6-16 servers")


@dataclass(frozen=True, slots=True)
class Step:
    """One measured step: replicas on each server (or only their number, where that is all that is known)."""

    network: str
    servers: int
    replicas: int
    where: tuple[int, ...]
    samples: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Steps:
    """Measured steps of one table, by column."""

    rows: tuple[Step, ...]
    networks: tuple[str, ...] = field(init=False)
    network: npt.NDArray[np.int64] = field(init=False)
    replicas: npt.NDArray[np.int64] = field(init=False)
    samples: npt.NDArray[np.int64] = field(init=False)
    seconds: npt.NDArray[np.float64] = field(init=False)
    split: npt.NDArray[np.bool_] = field(init=False)
    kind: npt.NDArray[np.int64] = field(init=False)
    """Index into CLASSES."""

    def __post_init__(self) -> None:
        names = tuple(sorted({row.network for row in self.rows}))
        servers = np.array([row.servers for row in self.rows])
        replicas = np.array([row.replicas for row in self.rows])
        conditions = [replicas == 1, servers == 1, servers == 2, servers <= 4]
        columns = {
            "networks": names,
            "network": np.array([names.index(row.network) for row in self.rows]),
            "replicas": replicas,
            "samples": np.array([row.samples for row in self.rows]),
            "seconds": np.array([row.seconds for row in self.rows]),
            "split": servers > 1,
            "kind": np.select(conditions, range(4), 4),
        }
        for name, column in columns.items():
            object.__setattr__(self, name, column)

    def training(self) -> npt.NDArray[np.bool_]:
        """Rows to fit: on one server every other batch size, on 2 to 4 every other placement, on more none."""
        batches = {name: sorted({row.samples for row in self.rows if row.network == name}) for name in self.networks}
        places = sorted({row.where for row in self.rows if row.where}, key=lambda where: (len(where), where))
        rank = {where: i for i, where in enumerate(place for place in places if len(place) > 1)}
        odd = [
            rank.get(row.where, 1) if row.servers > 1 else batches[row.network].index(row.samples) for row in self.rows
        ]
        return (np.array(odd) % 2 == 0) & (self.kind < 4)


def pollux() -> Steps:
    """T4, fp32."""
    names = {"imagenet": "resnet50", "cifar10": "resnet18_cifar", "bert": "bert_base"}
    return _tables({name: TRACES / "pollux-osdi21" / folder for folder, name in names.items()}, "")


def titan(gpu: str) -> Steps:
    """V100 or A100; the precision is not stated, the speed is that of tensor cores."""
    names = {
        "vit": "vit_b_16",
        "vit-large": "vit_l_16",
        "roberta-base": "roberta_base",
        "roberta-large": "roberta_large",
    }
    folder = TRACES / "titan-socc22" / gpu
    return Steps(tuple(row for short, name in names.items() for row in _tables({name: folder}, f"{short}_").rows))


def gavel() -> Steps:
    """V100, fp32; "unconsolidated" GPUs are taken to be on one server each. Throughputs count the steps of all GPUs."""
    names = {"ResNet-18": "resnet18_cifar", "ResNet-50": "resnet50"}
    with gzip.open(TRACES / "gavel-osdi20" / "physical_cluster_throughputs.json.gz", "rt") as file:
        table = json.load(file)
    rows = []
    for worker in ("v100", "v100_unconsolidated"):
        for key, rates in table[worker].items():
            label, gpus = ast.literal_eval(key)
            model, _, batch = label.removesuffix(")").partition(" (batch size ")
            if model not in names or (gpus == 1 and worker != "v100"):
                continue
            where = (gpus,) if worker == "v100" else (1,) * gpus
            rows.append(Step(names[model], len(where), gpus, where, int(batch), gpus / rates["null"]))
    return Steps(tuple(rows))


def _tables(folders: dict[str, Path], prefix: str) -> Steps:
    rows = []
    for name, folder in folders.items():
        for line in _lines(folder / f"{prefix}placements.csv.gz"):
            where = tuple(sorted(map(int, line["placement"])))
            rows.append(_step(name, len(where), sum(where), where, line))
        rows += [
            _step(name, int(line["num_nodes"]), int(line["num_replicas"]), (), line)
            for line in _lines(folder / f"{prefix}scalability.csv.gz")
        ]
    return Steps(tuple(rows))


def _step(name: str, servers: int, replicas: int, where: tuple[int, ...], line: dict[str, str]) -> Step:
    return Step(name, servers, replicas, where, int(line["local_bsz"]), float(line["step_time"]))


def _lines(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", newline="") as file:
        return list(csv.DictReader(file))
