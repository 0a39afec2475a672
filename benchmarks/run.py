"""Runs the benchmarks: one registry, each prints a table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from platform import python_version

sys.path.insert(0, str(Path(__file__).parent))

import agreement
import bounds
import debt_law
import freeze_experiment
import freeze_optimizer
import freeze_validation
import inflation
import live
import not_knowing
import offline
import placement
import prediction
import quality
import speed
import timing_validation

BENCHMARKS: dict[str, Callable[[bool], None]] = {
    "simulator-speed": speed.simulator_speed,
    "twin-speed": speed.twin_speed,
    "oracle-speed": speed.oracle_speed,
    "memory": speed.memory,
    "live-decision": live.live_decision,
    "policy-quality": quality.policy_quality,
    "placement-agreement": agreement.placement_agreement,
    "placement": placement.placement,
    "placement-inflation": inflation.placement_inflation,
    "prediction": prediction.prediction,
    "prediction-speed": prediction.prediction_speed,
    "not-knowing": not_knowing.not_knowing,
    "bound-quality": bounds.bound_quality,
    "bound-speed": bounds.bound_speed,
    "bound-trace": bounds.bound_trace,
    "offline-agreement": offline.offline_agreement,
    "offline-certificates": offline.offline_certificates,
    "offline-quality": offline.offline_quality,
    "debt-law": debt_law.debt_law,
    "timing-validation": timing_validation.timing_validation,
    "freeze-steps": freeze_validation.freeze_steps,
    "freeze-optimizer": freeze_optimizer.freeze_optimizer,
    "freeze-experiment": freeze_experiment.freeze_experiment,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run; all without any")
    parser.add_argument("--list", action="store_true", help="name the benchmarks and stop")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: a smoke test")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}; known: {', '.join(BENCHMARKS)}")
    if not arguments.list:
        print(f"frostline {version('frostline')}, Python {python_version()}")
    for name in list(BENCHMARKS) if arguments.list else arguments.names or list(BENCHMARKS):
        print(name if arguments.list else f"\n## {name}", flush=True)
        if not arguments.list:
            BENCHMARKS[name](arguments.quick)


if __name__ == "__main__":
    main()
