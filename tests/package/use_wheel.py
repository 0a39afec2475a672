"""Uses an installed frostline: imports, data files, types marker, import cost; argument: the source tree."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import frostline
from frostline.problem import Cluster, Instance, network_names, shipped_network
from frostline.records import best_known, faults_of, library_folder
from frostline.simulation import simulate
from frostline.traces import generate_jobs
from frostline.traces.library import instance_names, load_named_instance, matching_names


def check_library(source: Path) -> None:
    """All instances, schedules and certificates are there, and those of a family are right."""
    shipped = {path.relative_to(library_folder()) for path in library_folder().rglob("*.json*")}
    assert shipped == {path.relative_to(source / "instances") for path in (source / "instances").rglob("*.json*")}
    for name in matching_names(["tiny/pool-0*"]):
        assert best_known(name).proved
        assert not faults_of(best_known(name), load_named_instance(name), library_folder())


def main(source: Path) -> None:
    package = Path(str(files("frostline")))
    assert source not in package.parents, f"frostline comes from the source tree: {package}"
    assert (package / "py.typed").is_file()
    assert not list((package / "models").glob("*.py"))
    assert shipped_network("gpt2").params == 124_439_808
    assert len(network_names()) == len(list((source / "models").glob("*.json")))
    assert load_named_instance("p14").jobs[2].id == "J3"
    assert "philly-like-5000" in instance_names()
    check_library(source)
    instance = Instance(cluster=Cluster.uniform(4), jobs=generate_jobs(200, seed=1, gpus=32))
    result = simulate(instance, "asrpt")
    assert result.metrics.jobs == 200
    assert frostline.__version__

    heavy = (
        "ortools",
        "sklearn",
        "matplotlib",
        "numba",
        "pandas",
        "scipy",
        "pulp",
        "highspy",
        "cattrs",
        "rich",
        "typer",
    )
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import frostline, sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))",
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert not set(heavy) & set(loaded), f"import frostline loads {sorted(set(heavy) & set(loaded))}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
