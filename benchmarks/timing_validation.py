"""Fits the iteration-time model to measured step times, and says how far it is off where it was not fitted.

``python benchmarks/timing_validation.py --write`` also rewrites the shipped figures and the tables of the docs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

import measured_networks
import numpy as np
import numpy.typing as npt
from measured_steps import CLASSES, Steps, gavel, pollux, titan

from frostline.problem import TrainingPlan, gpu_type
from frostline.problem.plan import BYTES_PER_ELEMENT
from frostline.timing.calibration import Calibration, Saturation
from frostline.timing.iteration_time import NS_PER_S, iteration_ns

_ROOT = Path(__file__).parent.parent
_SHIPPED = _ROOT / "solver" / "frostline" / "timing" / "calibrations.json"
_DOCS = _ROOT / "docs" / "timing.md"
_MARK = "<!-- benchmarks/timing_validation.py --write -->"

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Case:
    """A table of step times, and what it was measured on."""

    name: str
    gpu_type: str
    precision: str
    read: Callable[[], Steps]
    tables: str


CASES = (
    Case("t4-fp32", "T4", "fp32", pollux, "Pollux (Qiao et al., OSDI 2021), placements and scalability"),
    Case("v100-fp16", "V100-SXM2-32", "fp16", lambda: titan("V100"), "Titan (Gao et al., SoCC 2022), V100"),
    Case("a100-fp16", "A100-SXM-80", "fp16", lambda: titan("A100"), "Titan (Gao et al., SoCC 2022), A100"),
    Case("v100-fp32", "V100-SXM2-16", "fp32", gavel, "Gavel (Narayanan et al., OSDI 2020), v100 alone"),
)


def timing_validation(quick: bool) -> None:
    """Error of the iteration-time model on step times that it was not fitted to."""
    print("\n".join(_report(CASES[:1] if quick else CASES)[1]))


def _report(cases: tuple[Case, ...]) -> tuple[list[Calibration], list[str]]:
    fitted, held, left = [], [], []
    for case in cases:
        steps = case.read()
        training = steps.training()
        part = best_fit(case, steps, training)
        held += _error_rows(case.name, steps, part, ~training)
        for name in steps.networks:
            known = (steps.network != steps.networks.index(name)) | (steps.kind == 0)
            apart = best_fit(case, steps, known, part.overlap)
            left += _error_rows(case.name, steps, apart, ~known)
        fitted.append(_sourced(case, steps, best_fit(case, steps, np.ones(len(steps.rows), np.bool_)), part, training))
    lines = [*_parameter_table(fitted), "", "Held-out batches and placements, mean / 95th percentile of |error| in %:"]
    lines += ["", *_error_table(held), "", "Networks left out but for their steps on 1 GPU:", "", *_error_table(left)]
    return fitted, lines


def best_fit(case: Case, steps: Steps, rows: Mask, overlap: bool | None = None) -> Calibration:
    """Fit of some rows; whether communication overlaps computation is what fits them better."""
    modes = (False, True) if overlap is None else (overlap,)
    return min((_fit(case, steps, rows, mode) for mode in modes), key=lambda pair: pair[0])[1]


def _fit(case: Case, steps: Steps, rows: Mask, overlap: bool) -> tuple[float, Calibration]:
    """Weighted squares of log errors and the fit; every network weighs the same in every class of placement."""
    from scipy.optimize import least_squares

    count = len(steps.networks)
    flops = np.array([_flops(name) for name in steps.networks], float)[steps.network]
    gradients = np.array([_params(name) for name in steps.networks], float)[steps.network]
    ring = 2 * (steps.replicas - 1) / steps.replicas * gradients * BYTES_PER_ELEMENT[case.precision]
    peak = gpu_type(case.gpu_type).peak(case.precision)
    weights, logs = _weights(steps, rows), np.log(steps.seconds)

    def residuals(logged: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        values = np.exp(logged)
        utilisation, half = values[:count][steps.network], values[count : 2 * count][steps.network]
        base = flops * (steps.samples + half) / (peak * utilisation) + ring / values[-2]
        card = np.where(steps.split, ring / values[-1], 0.0)
        total = np.maximum(base, card) if overlap else base + card
        return ((np.log(total) - logs) * weights)[rows]

    low = [1e-3] * count + [1e-3] * count + [1e6, 1e6]
    high = [1.0] * count + [1e3] * count + [1e12, 1e12]
    start = [0.4] * count + [2.0] * count + [1e10, 1e9]
    found = least_squares(residuals, np.log(start), bounds=(np.log(low), np.log(high)))
    values = [float(f"{value:.4g}") for value in np.exp(found.x)]
    networks = {
        name: Saturation(utilisation=values[i], half_batch=values[count + i]) for i, name in enumerate(steps.networks)
    }
    calibration = Calibration(
        name=case.name,
        gpu_type=case.gpu_type,
        precision=case.precision,
        nvlink_bytes_per_s=values[-2],
        nic_bytes_per_s=values[-1],
        overlap=overlap,
        networks=networks,
        source={},
    )
    return float(found.cost), calibration


def _weights(steps: Steps, rows: Mask) -> npt.NDArray[np.float64]:
    weights = np.zeros(len(steps.rows))
    for group in _groups(steps, rows):
        weights[group] = 1 / np.sqrt(group.sum())
    return weights


def _groups(steps: Steps, rows: Mask) -> Iterator[Mask]:
    for network in range(len(steps.networks)):
        for kind in range(len(CLASSES)):
            group = rows & (steps.network == network) & (steps.kind == kind)
            if group.any():
                yield group


@cache
def _flops(name: str) -> int:
    network = measured_networks.MAKERS[name]()
    return sum(layer.forward_flops + layer.backward_flops for layer in network.layers)


@cache
def _params(name: str) -> int:
    network = measured_networks.MAKERS[name]()
    return network.params_of(range(len(network.layers)))


def errors(steps: Steps, calibration: Calibration, rows: Mask) -> npt.NDArray[np.float64]:
    """Absolute relative errors of the library's own iteration times, 0 outside the rows."""
    known: dict[tuple[int, int, int, bool], float] = {}
    result = np.zeros(len(steps.rows))
    for i in np.flatnonzero(rows):
        key = (int(steps.network[i]), int(steps.replicas[i]), int(steps.samples[i]), bool(steps.split[i]))
        if key not in known:
            known[key] = _seconds(calibration, steps.networks[key[0]], *key[1:])
        result[i] = abs(known[key] / steps.seconds[i] - 1)
    return result


def _seconds(calibration: Calibration, name: str, replicas: int, samples: int, split: bool) -> float:
    """Iteration time of data-parallel training, which depends on the replicas and on whether one server holds all."""
    network = _network(name)
    plan = TrainingPlan(
        network=network, stages=[range(len(network.layers))], replicas=[replicas], global_batch=replicas * samples
    )
    placement = [[replicas - 1], [1]] if split else [[replicas], [0]]
    return iteration_ns(calibration.timing(plan, calibration.cluster(2, replicas)), placement) / NS_PER_S


@cache
def _network(name: str) -> measured_networks.Network:
    return measured_networks.MAKERS[name]()


def _sourced(case: Case, steps: Steps, full: Calibration, part: Calibration, training: Mask) -> Calibration:
    """The fit of all rows, with its provenance and the hold-out error of the fit of some."""
    held = errors(steps, part, ~training)[~training]
    source = {
        "tables": case.tables,
        "rows": f"{len(steps.rows)} fitted; hold-out: {int(training.sum())} fitted, {int((~training).sum())} left out",
        "holdout_error": f"mean {100 * held.mean():.1f} %, 95th percentile {100 * np.percentile(held, 95):.1f} %",
        "date": date.today().isoformat(),
        "command": "python benchmarks/timing_validation.py --write",
    }
    fields = ("name", "gpu_type", "precision", "nvlink_bytes_per_s", "nic_bytes_per_s", "overlap", "networks")
    return Calibration(**{name: getattr(full, name) for name in fields}, source=source)


ErrorRow = tuple[str, str, list[str], str]


def _error_rows(case: str, steps: Steps, calibration: Calibration, rows: Mask) -> list[ErrorRow]:
    found = errors(steps, calibration, rows)
    table = []
    for network, name in enumerate(steps.networks):
        mine = rows & (steps.network == network)
        if mine.any():
            cells = [_cell(found[mine & (steps.kind == kind)]) for kind in range(len(CLASSES))]
            table.append((case, name, cells, _cell(found[mine])))
    return table


def _cell(found: npt.NDArray[np.float64]) -> str:
    if not len(found):
        return "–"
    return f"{100 * found.mean():.1f} / {100 * np.percentile(found, 95):.0f} ({len(found)})"


def _error_table(rows: list[ErrorRow]) -> list[str]:
    head = ["calibration", "network", *CLASSES, "all"]
    lines = [f"| {' | '.join(head)} |", "|---|---|" + "---|" * (len(CLASSES) + 1)]
    return lines + [f"| {case} | {name} | {' | '.join(cells)} | {every} |" for case, name, cells, every in rows]


def _parameter_table(fitted: list[Calibration]) -> list[str]:
    lines = [
        "| calibration | GPU | inside a server, GB/s | card, GB/s | overlap | utilisation (samples to half of it) |"
    ]
    lines.append("|---|---|---|---|---|---|")
    for found in fitted:
        parts = [f"{name} {s.utilisation:.3g} ({s.half_batch:.3g})" for name, s in found.networks.items()]
        bandwidths = f"{found.nvlink_bytes_per_s / 1e9:.3g} | {found.nic_bytes_per_s / 1e9:.3g}"
        overlap = "yes" if found.overlap else "no"
        lines.append(f"| {found.name} | {found.gpu_type} | {bandwidths} | {overlap} | {', '.join(parts)} |")
    return lines


def write(fitted: list[Calibration], lines: list[str]) -> None:
    """Rewrite the shipped figures and the tables of the docs."""
    entries = [
        {
            "name": found.name,
            "gpu_type": found.gpu_type,
            "precision": found.precision,
            "nvlink_bytes_per_s": found.nvlink_bytes_per_s,
            "nic_bytes_per_s": found.nic_bytes_per_s,
            "overlap": found.overlap,
            "networks": {
                name: {"utilisation": s.utilisation, "half_batch": s.half_batch} for name, s in found.networks.items()
            },
            "source": dict(found.source),
        }
        for found in fitted
    ]
    document = {"format": "frostline/calibrations", "version": 1, "calibrations": entries}
    _SHIPPED.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    before, _, rest = _DOCS.read_text("utf-8").partition(_MARK)
    after = rest.partition(_MARK)[2]
    tables = "\n".join(lines)
    _DOCS.write_text(f"{before}{_MARK}\n\n{tables}\n\n{_MARK}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite the shipped figures and the tables of the docs")
    arguments = parser.parse_args()
    fitted, lines = _report(CASES)
    print("\n".join(lines))
    if arguments.write:
        write(fitted, lines)


if __name__ == "__main__":
    main()
