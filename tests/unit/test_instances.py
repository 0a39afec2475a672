"""Every instance of the index loads, and every value that the index knows is so."""

from __future__ import annotations

import json
from itertools import permutations, product
from pathlib import Path

import pytest

from frostline.errors import UnknownNameError
from frostline.problem import Instance, Placement, Schedule, Segment, digest, load_instance, save
from frostline.relaxation import lower_bound
from frostline.testing import Choice, assert_feasible, list_schedule
from frostline.traces.library import FAMILIES, KnownValue, instance_entry, instance_names, load_named_instance
from frostline.traces.workload import offered_load
from frostline.units import duration_us, instant_us, seconds

FOLDER = Path(__file__).parents[2] / "instances"


def figures(instance: Instance, schedule: Schedule) -> dict[str, float]:
    completion_us = schedule.completion_us
    flow_us = sum(completion_us[job.id] - instant_us(job.release_s) for job in instance.jobs)
    return {"total_flow_s": seconds(flow_us), "makespan_s": seconds(max(completion_us.values()))}


def best(instance: Instance) -> dict[str, float]:
    """Least of each figure over all active schedules."""
    servers = list(permutations(range(len(instance.cluster.servers))))
    ways = list(product(servers, (False, True)))
    found = [
        figures(instance, list_schedule(instance, [_choice(j, way) for j, way in zip(order, chosen, strict=True)]))
        for order in permutations(range(len(instance.jobs)))
        for chosen in product(ways, repeat=len(order))
    ]
    return {name: min(row[name] for row in found) for name in found[0]}


def _choice(job: int, way: tuple[tuple[int, ...], bool]) -> Choice:
    return Choice(job=job, servers=way[0], spread=way[1])


def by_hand(instance: Instance, starts_s: list[float], loads: list[list[tuple[int, int]]]) -> dict[str, float]:
    segments = [
        Segment(job.id, start_us, start_us + duration_us(job.work.duration_s), Placement((m, (g,)) for m, g in held))  # type: ignore[union-attr]
        for job, start_us, held in zip(instance.jobs, map(instant_us, starts_s), loads, strict=True)
    ]
    schedule = Schedule(segments=tuple(segments))
    assert_feasible(instance, schedule)
    return figures(instance, schedule)


STARTS: dict[tuple[str, str], tuple[list[float], list[list[tuple[int, int]]]]] = {
    ("q06", "strict order"): ([0, 100, 110], [[(0, 6)], [(0, 8)], [(0, 2)]]),
    ("q06", "backfill with a protected head"): ([0, 100, 2], [[(0, 6)], [(0, 8)], [(0, 2)]]),
    ("q09", "strict order"): ([0, 10, 12], [[(0, 1)]] * 3),
    ("p14", "first two jobs spread over both servers"): ([0, 0, 10], [[(0, 4)], [(1, 4)], [(0, 6)]]),
}
VALUES = [(name, value) for name in instance_names() for value in instance_entry(name).known]


@pytest.mark.parametrize(("name", "known"), VALUES, ids=lambda value: getattr(value, "of", value))
def test_known_values(name: str, known: KnownValue) -> None:
    instance = load_named_instance(name)
    if known.of == "optimum":
        found = best(instance)
    elif known.of in ("srpt bound", "preemptive optimum"):
        found = {"total_flow_s": lower_bound(instance, "srpt").total_flow_s}
    else:
        found = by_hand(instance, *STARTS[name, known.of])
    assert found[known.quantity] == known.value


def test_preemptive_optimum_is_the_bound_only_on_one_gpu() -> None:
    named = [name for name, value in VALUES if value.of == "preemptive optimum"]
    assert [load_named_instance(name).cluster.gpus for name in named] == [1]


@pytest.mark.parametrize("name", [name for name in instance_names() if instance_entry(name).file])
def test_stored_files_are_as_they_would_be_written(name: str, tmp_path: Path) -> None:
    instance = load_named_instance(name)
    assert instance.name == name
    save(instance, tmp_path / "copy.json")
    assert (tmp_path / "copy.json").read_bytes() == (FOLDER / f"{name}.json").read_bytes()


def test_every_file_is_in_the_index() -> None:
    stored = {path.name for path in FOLDER.glob("*.json")} - {"index.json", "bounds.json"}
    assert stored == {instance_entry(name).file for name in instance_names() if "/" not in name} - {None}
    names = [entry["name"] for entry in json.loads((FOLDER / "index.json").read_text())["instances"]]
    assert tuple(names) == instance_names()


def test_the_readme_names_them_all() -> None:
    text = (FOLDER / "README.md").read_text("utf-8")
    assert all(f"`{name}`" in text for name in (*FAMILIES, *instance_names()) if "/" not in name)


def test_philly_like() -> None:
    instance = load_named_instance("philly-like-5000")
    assert (len(instance.jobs), instance.cluster.capacities) == (5000, (8,) * 64)
    assert offered_load(instance.jobs, instance.cluster.gpus) == pytest.approx(2.0)
    assert digest(instance) == digest(load_named_instance("philly-like-5000"))
    assert instance.provenance["seed"] == "20170807"


def test_generated_instances_survive_a_file(tmp_path: Path) -> None:
    instance = load_named_instance("philly-like-5000")
    save(instance, tmp_path / "p.json.gz")
    assert load_instance(tmp_path / "p.json.gz") == instance


def test_unknown_name() -> None:
    with pytest.raises(UnknownNameError, match="unknown instance 'q6'; did you mean 'q06'"):
        load_named_instance("q6")
