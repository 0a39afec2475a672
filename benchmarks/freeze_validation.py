"""Step time and saved activations by freeze level, predicted and measured.

``python benchmarks/freeze_validation.py --write`` also rewrites the tables of the docs.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from freeze_networks import MAKERS
from public_traces import TRACES

from frostline.freezing.levels import FreezeLevels
from frostline.freezing.memory import activation_bytes
from frostline.freezing.network_units import NetworkUnits, freeze_units
from frostline.freezing.profiled import LevelTimes
from frostline.freezing.units import FreezeUnit, FreezeUnits

FREEZING = TRACES.parent / "freezing"
RUNS = (("mlp", "sgdm"), ("resnet", "sgdm"), ("tfm", "sgdm"), ("tfm", "adamw"))
SOURCES = ("FLOPs", "profile", "profile, equal units averaged")
_DOCS = Path(__file__).parent.parent / "docs" / "freezing.md"
_MARK = "<!-- benchmarks/freeze_validation.py --write -->"


@dataclass(frozen=True, slots=True)
class Step:
    """Median step of one network at one level."""

    seconds: float
    batch: int
    saved_bytes: int


def steps(network: str, optimizer: str, variant: str) -> list[Step]:
    """Measured steps of a network by level; ``variant`` says whether the frozen units are computed or cached."""
    rows = _rows(f"step_{network}_{optimizer}")
    return [
        Step(float(row["step_med"]), int(row["batch"]), int(row["saved_act_bytes"]))
        for row in rows
        if row["variant"] == variant
    ]


def profile(network: str, optimizer: str) -> FreezeUnits:
    """Units of a network in seconds, each measured on its own.

    The input gradient is what the whole backward pass takes beyond the one without it, never less than nothing.
    """
    return FreezeUnits(
        tuple(
            FreezeUnit(
                forward=float(row["fwd"]),
                weight_gradient=min(float(row["bwd_both"]), float(row["bwd_wonly"])),
                input_gradient=max(0.0, float(row["bwd_both"]) - float(row["bwd_wonly"])),
                optimizer=float(row["opt_step"]),
                params=int(row["params"]),
            )
            for row in _rows(f"prof_{network}_{optimizer}")
        )
    )


def freeze_steps(quick: bool) -> None:
    """Error of predicted step times at freeze levels between two measured ones, and of predicted activations."""
    print("\n".join(_report(RUNS[:1] if quick else RUNS)))


def errors(units: FreezeUnits, frozen: list[int], seconds: list[float], cached: bool) -> list[float]:
    """Relative errors at the levels that lie between the first and the last, which are given."""
    found = []
    for level in range(1, len(frozen) - 1):
        levels = FreezeLevels(units=units, frozen_units=(0, frozen[level], frozen[-1]))
        times = LevelTimes.two_point(levels, seconds[0], seconds[-1], cached=cached)
        found.append(times.seconds(1) / seconds[level] - 1)
    return found


def kinds(network: str, optimizer: str) -> list[tuple[str, str]]:
    """Parameters and counted FLOPs of each unit of a network: where both are equal, so is the work."""
    counted = [row["fwd_flops"] for row in _rows("flops") if row["model"] == network and row["kind"] == "unit"]
    return [(row["params"], flops) for row, flops in zip(_rows(f"prof_{network}_{optimizer}"), counted, strict=True)]


def _report(runs: tuple[tuple[str, str], ...]) -> list[str]:
    heads = " | ".join(f"{source}: mean / worst" for source in SOURCES)
    lines = [f"| network, optimizer | frozen units | levels | {heads} |", "|---|---|---|---|---|---|"]
    pooled: dict[tuple[str, str], list[float]] = {}
    for network, optimizer in runs:
        for variant, words in (("plain", "computed"), ("cached", "cached")):
            found = dict(by_source(network, optimizer, variant))
            for source, sizes in found.items():
                pooled.setdefault((words, source), []).extend(sizes)
            cells = " | ".join(map(_cell, found.values()))
            lines.append(f"| {network}, {optimizer} | {words} | {len(found['FLOPs'])} | {cells} |")
    for words in ("computed", "cached"):
        cells = [_cell(pooled[words, source]) for source in SOURCES]
        lines.append(f"| all | {words} | {len(pooled[words, 'FLOPs'])} | {' | '.join(cells)} |")
    return [*lines, "", *_memory(runs)]


def by_source(network: str, optimizer: str, variant: str) -> Iterator[tuple[str, list[float]]]:
    """Relative errors of the steps of a run, by what tells the work of its units."""
    measured = MAKERS[network]()
    seconds = [step.seconds for step in steps(network, optimizer, variant)]
    units = freeze_units(measured.network)
    frozen = [measured.frozen(units, level) for level in range(len(seconds))]
    levels, timed, cached = list(range(len(seconds))), profile(network, optimizer), variant == "cached"
    averaged = timed.averaged(kinds(network, optimizer))
    yield SOURCES[0], errors(units.units, frozen, seconds, cached)
    yield SOURCES[1], errors(timed, levels, seconds, cached)
    yield SOURCES[2], errors(averaged, levels, seconds, cached)


def _cell(found: list[float]) -> str:
    sizes = [abs(error) for error in found]
    return f"{100 * sum(sizes) / len(sizes):.1f} / {100 * max(sizes):.1f} %"


def _memory(runs: tuple[tuple[str, str], ...]) -> list[str]:
    lines = [
        "| network | frozen units | measured, MB | saved by trained units, MB | with the largest frozen output, MB |"
    ]
    lines.append("|---|---|---|---|---|")
    for network in dict.fromkeys(network for network, _ in runs):
        measured = MAKERS[network]()
        units = freeze_units(measured.network)
        for level, step in enumerate(steps(network, "sgdm", "plain")):
            saved, bound = saved_bytes(units, measured.frozen(units, level), step.batch)
            cells = [f"{amount / 1e6:.2f}" for amount in (step.saved_bytes, saved, bound)]
            lines.append(f"| {network} | {level} | {' | '.join(cells)} |")
    return lines


def saved_bytes(units: NetworkUnits, frozen: int, batch: int) -> tuple[int, int]:
    """Activations of a batch that trained units save, and the same with the largest frozen output."""
    saved = sum(unit.saved_bytes for unit in units.units.units[frozen:])
    return saved * batch, activation_bytes(units.units, frozen) * batch


def _rows(name: str) -> list[dict[str, str]]:
    with (FREEZING / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite the tables of the docs")
    arguments = parser.parse_args()
    lines = _report(RUNS)
    print("\n".join(lines))
    if arguments.write:
        before, _, rest = _DOCS.read_text("utf-8").partition(_MARK)
        tables = "\n".join(lines)
        _DOCS.write_text(f"{before}{_MARK}\n\n{tables}\n\n{_MARK}{rest.partition(_MARK)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
