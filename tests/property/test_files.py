"""Whatever is written is read back equal, from the same bytes in every process; whatever is changed is noticed."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from frostline.errors import FileError
from frostline.problem import (
    Cluster,
    Elastic,
    Fixed,
    Instance,
    Job,
    Locality,
    PlacementClass,
    Profiled,
    Schedule,
    Training,
    TrainingPlan,
    Work,
    digest,
    load,
    load_instance,
    load_schedule,
    save,
    shipped_network,
)
from frostline.testing import clusters, instances, networks, schedules

ALL_WORKS = ("fixed", "profiled", "elastic", "training")
EVERYTHING = instances(localities=tuple(Locality), works=ALL_WORKS, impossible=True)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@given(record=clusters() | networks() | EVERYTHING)
def test_round_trip(folder: Path, record: Any) -> None:
    for name in ("r.json", "r.json.gz"):
        save(record, folder / name)
        assert load(folder / name) == record
    assert gzip.decompress((folder / "r.json.gz").read_bytes()) == (folder / "r.json").read_bytes()
    save(load(folder / "r.json"), folder / "again.json")
    assert (folder / "again.json").read_bytes() == (folder / "r.json").read_bytes()


@given(data=st.data())
def test_round_trip_of_schedules(folder: Path, data: st.DataObject) -> None:
    instance = data.draw(EVERYTHING)
    schedule = data.draw(schedules(instance))
    save(schedule, folder / "s.json", instance=instance)
    assert load_schedule(folder / "s.json", instance) == load(folder / "s.json") == schedule


@given(data=st.data())
def test_any_text_in_any_name(folder: Path, data: st.DataObject) -> None:
    # Surrogates cannot be written as UTF-8, but JSON can escape them.
    texts = st.text(st.characters(), min_size=1, max_size=8)
    instance = data.draw(instances(max_jobs=3))
    ids = data.draw(st.lists(texts, min_size=len(instance.jobs), max_size=len(instance.jobs), unique=True))
    jobs = [job.replace(id=name, user=data.draw(texts)) for job, name in zip(instance.jobs, ids, strict=True)]
    named = instance.replace(jobs=jobs, name=data.draw(texts), provenance={data.draw(texts): data.draw(texts)})
    save(named, folder / "t.json")
    assert load_instance(folder / "t.json") == named


@given(first=instances(max_jobs=3), second=instances(max_jobs=3))
def test_digests_differ_where_instances_do(first: Instance, second: Instance) -> None:
    assert (digest(first) == digest(second)) == (first == second)


@given(data=st.data())
def test_no_document_is_read_after_a_cut(folder: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["c.json", "c.json.gz"]))
    save(data.draw(EVERYTHING), folder / name)
    content = (folder / name).read_bytes()
    kept = data.draw(st.integers(0, len(content) - 3))
    (folder / name).write_bytes(content[:kept])
    with pytest.raises(FileError):
        load(folder / name)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(inner, (*path, key))


JUNK: list[Any] = [None, True, -1, 1.5, 10**30, 1e300, "x", "", [], {}, [[]], {"a": 1}]


@given(data=st.data())
def test_junk_anywhere_is_an_error_of_ours_or_a_record(folder: Path, data: st.DataObject) -> None:
    instance = data.draw(EVERYTHING)
    record: Any = data.draw(st.sampled_from([instance, instance.cluster])) if data.draw(st.booleans()) else None
    save(record or data.draw(schedules(instance)), folder / "j.json", instance=None)
    document = json.loads((folder / "j.json").read_text())
    *parents, key = data.draw(st.sampled_from([path for path in _places(document) if path]))
    holder = document
    for step in parents:
        holder = holder[step]
    junk = data.draw(st.sampled_from(JUNK))
    assume(type(holder[key]) is not type(junk) or holder[key] != junk)
    holder[key] = junk
    (folder / "j.json").write_text(json.dumps(document))
    try:
        found = load(folder / "j.json")
    except FileError as error:
        assert "$" in error.problem or "version" in error.problem
        assert "Error" not in error.problem
    else:
        save(found, folder / "k.json")
        assert load(folder / "k.json") == found


SCRIPT = """
import sys
from frostline.problem import load, save
save(load(sys.argv[1]), sys.argv[2])
"""


def test_same_bytes_in_every_process(folder: Path) -> None:
    table = {PlacementClass.MANY_SERVERS: 0.75, PlacementClass.ONE_SERVER: 0.5}
    works: list[Work] = [
        Training(plan=TrainingPlan.balanced(shipped_network("vgg19"), 4, stages=2), iterations=10),
        Profiled(iterations=4, seconds_per_iteration=table),
        Elastic(iterations=4, widths=(4,), seconds_per_iteration={where: {4: [0.5]} for where in table}),
        Fixed(duration_s=0.1),
    ]
    jobs = [Job(id=f"j{i}", release_s=i, work=work, gpus=4) for i, work in enumerate(works)]
    path = folder / "0.json"
    save(Instance(cluster=Cluster.uniform(2), jobs=jobs, provenance={"b": "1", "a": "2"}), path)
    for seed in ("1", "2"):
        copy = folder / f"{seed}.json"
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", SCRIPT, str(path), str(copy)], check=True, env=environment)
        assert copy.read_bytes() == path.read_bytes()


def test_an_empty_schedule_is_a_schedule(folder: Path) -> None:
    save(Schedule(segments=()), folder / "e.json")
    assert load_schedule(folder / "e.json") == Schedule(segments=())
