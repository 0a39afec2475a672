"""Bad files: each fault is one error that says what and where; good files come back as they were."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frostline.errors import FileError, InvalidValueError
from frostline.problem import (
    Cluster,
    Fixed,
    GpuType,
    Instance,
    Job,
    Locality,
    Network,
    Placement,
    PlacementClass,
    Profiled,
    Reason,
    Refusal,
    Schedule,
    Segment,
    Server,
    Training,
    TrainingPlan,
    digest,
    load,
    load_cluster,
    load_instance,
    load_network,
    load_schedule,
    save,
    shipped_network,
)
from frostline.problem.network import Edge, Layer


def network(name: str = "net", params: int = 8) -> Network:
    layers = [
        Layer(id=i, params=params, forward_flops=6, backward_flops=12, output_elements=2, saved_bytes=8)
        for i in range(3)
    ]
    edges = [Edge(source=i, target=i + 1, elements=2) for i in range(2)]
    return Network(name=name, layers=layers, edges=edges)


def training(net: Network) -> Training:
    plan = TrainingPlan(network=net, stages=(range(1), range(1, 3)), replicas=(1, 3), global_batch=12)
    return Training(plan=plan, iterations=7)


def instance() -> Instance:
    table = {PlacementClass.ONE_SERVER: 0.5, PlacementClass.MANY_SERVERS: 0.75}
    work = [
        Fixed(duration_s=0.1),
        Profiled(iterations=4, seconds_per_iteration=table),
        training(network()),
        training(network()),
        training(network(params=9)),
    ]
    jobs = [
        Job(id=f"j{i}", release_s=i / 3, work=w, gpus=4, user="µ\n", weight=1.5, locality=Locality.FEWEST)
        for i, w in enumerate(work)
    ]
    gpu = GpuType(name="odd", peak_flops={"fp16": 1e12}, memory_bytes=None)
    servers = (Server(id="a", gpus=4, gpu_type=gpu, rack="r"), Server(id="b", gpus=8, nic_bytes_per_s=1.5e9))
    return Instance(cluster=Cluster(servers=servers), jobs=jobs, name="small", provenance={"by": "hand"})


def schedule() -> Schedule:
    segments = [
        Segment("j0", 0, 100_000, Placement([(0, (4,))])),
        Segment("j2", 5, 9, Placement([(0, (1, 2)), (1, (0, 1))]), 2),
    ]
    refused = [Refusal(job="x", need_gpus=99, largest_offer_gpus=12, reason=Reason.CLUSTER_TOO_SMALL)]
    return Schedule(segments=segments, refused=refused, policy="fifo")


RECORDS: list[tuple[str, Callable[[], Any]]] = [
    ("network", network),
    ("cluster", lambda: instance().cluster),
    ("instance", instance),
    ("schedule", schedule),
]


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
@pytest.mark.parametrize(("kind", "make"), RECORDS)
def test_round_trip(tmp_path: Path, kind: str, make: Callable[[], Any], ending: str) -> None:
    path = tmp_path / f"{kind}{ending}"
    save(make(), path)
    assert load(path) == make()
    first = path.read_bytes()
    assert (first[:2] == b"\x1f\x8b") == (ending == ".json.gz")
    save(load(path), path)
    assert path.read_bytes() == first
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_networks_of_an_instance_are_kept_once(tmp_path: Path) -> None:
    save(instance(), tmp_path / "i.json")
    data = json.loads((tmp_path / "i.json").read_text())
    assert sorted(data["networks"]) == ["net", "net#2"]
    assert [job["work"]["plan"]["network"] for job in data["jobs"][2:]] == ["net", "net", "net#2"]
    loaded = load_instance(tmp_path / "i.json")
    assert loaded.jobs[2].work.plan is loaded.jobs[3].work.plan  # type: ignore[union-attr]


def test_one_job_a_line(tmp_path: Path) -> None:
    save(instance(), tmp_path / "i.json")
    lines = (tmp_path / "i.json").read_text().splitlines()
    assert [json.loads(line.rstrip(","))["id"] for line in lines if line.startswith('{"id":"j')] == [
        f"j{i}" for i in range(5)
    ]


def test_an_estimate_is_kept_where_there_is_one(tmp_path: Path) -> None:
    first, *others = instance().jobs
    named = instance().replace(jobs=[first.replace(estimate_s=7200), *others])
    save(named, tmp_path / "i.json")
    data = json.loads((tmp_path / "i.json").read_text())
    assert [job.get("estimate_s") for job in data["jobs"]] == [7200.0] + [None] * len(others)
    assert sum("estimate_s" in job for job in data["jobs"]) == 1
    assert load_instance(tmp_path / "i.json") == named
    assert digest(named) != digest(instance())
    assert digest(named.replace(jobs=instance().jobs)) == digest(instance())


def test_digests_of_files_without_estimates_stay() -> None:
    jobs = (Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=2, user="u"),)
    known = Instance(cluster=Cluster.pool(4), jobs=jobs, name="known")
    assert digest(known) == "0fbc535e0b19e8b14eae9eb1c0173a3a5235c7b7a972dcbef707ef8c5316edbf"


def test_digest_is_that_of_the_file(tmp_path: Path) -> None:
    save(instance(), tmp_path / "i.json")
    assert digest(instance()) == hashlib.sha256((tmp_path / "i.json").read_bytes()).hexdigest()
    assert digest(load_instance(tmp_path / "i.json")) == digest(instance())
    assert digest(instance().replace(name="other")) != digest(instance())


def test_a_schedule_names_its_instance(tmp_path: Path) -> None:
    save(schedule(), tmp_path / "s.json", instance=instance())
    assert json.loads((tmp_path / "s.json").read_text())["instance"] == {"name": "small", "sha256": digest(instance())}
    assert load_schedule(tmp_path / "s.json", instance()) == load_schedule(tmp_path / "s.json") == schedule()
    other = instance().replace(jobs=instance().jobs[1:])
    with pytest.raises(FileError, match="is for the instance 'small', not for 'small' as it is now"):
        load_schedule(tmp_path / "s.json", other)
    save(schedule(), tmp_path / "s.json")
    assert load_schedule(tmp_path / "s.json", other) == schedule()


def test_a_file_that_gives_the_least(tmp_path: Path) -> None:
    text = """\ufeff
    {"version": 1, "format": "frostline/instance", "cluster": {"servers": [{"id": "s", "gpus": 8.0}]},
     "jobs": [{"id": "a", "gpus": 1, "release_s": 0, "work": {"kind": "fixed", "duration_s": 2}}]}"""
    (tmp_path / "i.json").write_text(text, "utf-8")
    cluster = Cluster(servers=(Server(id="s", gpus=8),))
    job = Job(id="a", gpus=1, release_s=0, work=Fixed(duration_s=2))
    assert load(tmp_path / "i.json") == Instance(cluster=cluster, jobs=(job,))


def test_a_network_inside_a_plan(tmp_path: Path) -> None:
    save(instance(), tmp_path / "i.json")
    data = json.loads((tmp_path / "i.json").read_text())
    data["jobs"][2]["work"]["plan"]["network"] = data.pop("networks")["net"]
    data["jobs"] = data["jobs"][:3]
    (tmp_path / "i.json").write_text(json.dumps(data))
    assert load_instance(tmp_path / "i.json").jobs == instance().jobs[:3]


# Faults before there are fields.


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (gzip.compress(b""), "is empty"),
        (gzip.compress(b'{"format": "frostline/cluster"}' * 20)[:-9], "is gzip data that is truncated or damaged"),
        (gzip.compress(b"{}")[:-4] + b"abcd", "is gzip data that is truncated or damaged"),
        (b"\x1f\x8bnot gzip", "is gzip data that is truncated or damaged"),
        (b'{"format": "\xff"}', "is not UTF-8: byte 0xff at offset 12"),
        (b'{"format": \n  frostline}', "is not JSON: Expecting value at line 2 column 3"),
        (b'{"format": "frostline/cluster"', "is not JSON: Expecting ',' delimiter at line 1 column 31"),
        (b"[1]", "holds no JSON object; expected a frostline/cluster"),
        (b"{}", "$.format: is missing; expected frostline/cluster"),
        (b'{"format": "cluster", "version": 1}', "$.format: is 'cluster'; expected frostline/cluster"),
        (b'{"format": 7, "version": 1}', "$.format: is 7; expected frostline/cluster"),
        (b'{"format": "frostline/instance", "version": 1}', "is 'frostline/instance'; expected frostline/cluster"),
        (b'{"format": "frostline/cluster"}', "$.version: is missing"),
        (b'{"format": "frostline/cluster", "version": "1"}', "$.version: '1' is no version"),
        (b'{"format": "frostline/cluster", "version": 2}', "version 2 is newer than the 1 this frostline reads"),
        (b'{"format": "frostline/cluster", "version": NaN}', "holds NaN, which is not a number of JSON"),
        (b'{"x": [-Infinity]}', "holds -Infinity, which is not a number of JSON"),
        (b'{"id": "a", "gpus": 1, "gpus": 2}', "key 'gpus' appears twice in the object with id 'a'"),
        (b'{"id": "a", "id": "b"}', "key 'id' appears twice in one object"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"x": ' + b"1" * 5000 + b"}", "holds a whole number with too many digits"),
    ],
)
def test_no_document(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(content)
    with pytest.raises(FileError) as error:
        load_cluster(path)
    assert str(error.value).startswith(f"{path}: ")
    assert problem in error.value.problem


def test_no_file(tmp_path: Path) -> None:
    for path, problem in [(tmp_path / "no.json", "no such file or folder"), (tmp_path, "is a folder")]:
        with pytest.raises(FileError, match=problem):
            load(path)
    with pytest.raises(FileError, match="null byte"):
        load("a\0b")


# Faults in fields.

CLUSTER = '{"format": "frostline/cluster", "version": 1, %s}'
INSTANCE = '{"format": "frostline/instance", "version": 1, "cluster": {"servers": [{"id": "s", "gpus": 8}]}, %s}'
SCHEDULE = '{"format": "frostline/schedule", "version": 1, %s}'
NETWORK = '{"format": "frostline/network", "version": 1, "name": "n", %s}'
JOB = '"id": "a", "gpus": 1, "release_s": 0, "work": {"kind": "fixed", "duration_s": 2}'


def _job(**changes: Any) -> str:
    """Text of an instance with a good job ``a`` and a job ``b`` with changes; None leaves a field out."""
    job = {**json.loads("{" + JOB + "}"), "id": "b", **changes}
    text = json.dumps({name: value for name, value in job.items() if value is not None})
    return INSTANCE % f'"jobs": [{{{JOB}}}, {text}]'


def _plan(**changes: Any) -> str:
    layers = [{"id": i, "params": 1, "forward_flops": 1, "output_elements": 1, "saved_bytes": 1} for i in range(2)]
    net = {"name": "n", "layers": layers, "edges": [{"source": 0, "target": 1, "elements": 1}]}
    plan = {"network": net, "stages": [[0, 2]], "replicas": [1], "global_batch": 1, **changes}
    return _job(work={"kind": "training", "iterations": 1, "plan": plan})


def _segment(**changes: Any) -> str:
    segment = {"job": "a", "start_us": 0, "end_us": 1, "placement": [[0, [1]]], **changes}
    return SCHEDULE % f'"segments": [{json.dumps(segment)}]'


FIELDS: list[tuple[str, str]] = [
    # unknown, missing
    (CLUSTER % '"servers": [], "racks": 2', "$.racks: unknown field"),
    (CLUSTER % '"gpu_types": []', "$.servers: is missing"),
    (CLUSTER % '"servers": [{"id": "s", "gpu": 8}]', "$.servers[0].gpus: is missing"),
    (CLUSTER % '"servers": [{"id": "s", "gpu": 8}]', "$.servers[0].gpu: unknown field; did you mean 'gpus'?"),
    (CLUSTER % '"servers": [{"id": "s", "gpus": 8, "capacities": 8}]', "$.servers[0].capacities: unknown field"),
    (_job(gpu=3), "$.jobs[1].gpu: unknown field; did you mean 'gpus'?"),
    (_job(gpus=None), "$.jobs[1].gpus: is missing"),
    (_job(work={"kind": "fixed", "duration": 2, "duration_s": 2}), "$.jobs[1].work.duration: unknown field"),
    (_job(work={"kind": "fixed"}), "$.jobs[1].work.duration_s: is missing"),
    (_job(work={"duration_s": 2}), "$.jobs[1].work.kind: is missing"),
    (_plan(stage=1), "$.jobs[1].work.plan.stage: unknown field; did you mean 'stages'?"),
    (_segment(level=1), "$.segments[0].level: unknown field"),
    (SCHEDULE % '"segments": [], "instance": {"name": "x"}', "$.instance.sha256: is missing"),
    (NETWORK % '"layers": [], "links": []', "$.links: [] is not a field of this format"),
    (NETWORK % '"layers": []', "$.edges: None is missing"),
    # wrong type
    (CLUSTER % '"servers": {"id": "s"}', "$.servers: {'id': 's'} must be a list"),
    (CLUSTER % '"servers": "s0"', "$.servers: 's0' must be a list"),
    (CLUSTER % '"servers": ["s0"]', "$.servers[0]: 's0' must be an object"),
    (CLUSTER % '"servers": [{"id": 1, "gpus": 8}]', "$.servers[0].id: 1 must be text"),
    (CLUSTER % '"servers": [{"id": "s", "gpus": 8, "rack": 1}]', "$.servers[0].rack: 1 must be text"),
    (CLUSTER % '"servers": [{"id": "s", "gpus": 8, "gpu_type": 1}]', "$.servers[0].gpu_type: 1 must be the name of a"),
    (CLUSTER % '"servers": [], "gpu_types": [{"name": "x", "peak_flops": 3}]', "[0].peak_flops: 3 must be an object"),
    (INSTANCE % '"jobs": null', "$.jobs: None must be a list"),
    (INSTANCE % '"jobs": [], "provenance": {"a": 1}', "$.provenance: 1 must be text"),
    (INSTANCE % '"jobs": [], "networks": []', "$.networks: [] must be an object"),
    (_job(gpus="2"), "$.jobs[1].gpus: '2' must be a whole number"),
    (_job(gpus=True), "$.jobs[1].gpus: True must be a whole number"),
    (_job(gpus=[2]), "$.jobs[1].gpus: [2] must be a whole number"),
    (_job(gpus=7.9999999), "$.jobs[1].gpus: 7.9999999 must be a whole number"),
    (_job(release_s="0"), "$.jobs[1].release_s: '0' must be a number"),
    (_job(release_s=False), "$.jobs[1].release_s: False must be a number"),
    (_job(user=3), "$.jobs[1].user: 3 must be text"),
    (_job(estimate_s="60"), "$.jobs[1].estimate_s: '60' must be a number"),
    (_job(estimate_s=[60]), "$.jobs[1].estimate_s: [60] must be a number"),
    (_job(work=5), "$.jobs[1].work: 5 must be an object"),
    (_job(work={"kind": []}), "$.jobs[1].work.kind: [] must be one of fixed, profiled, elastic, training"),
    (_job(locality=["any"]), "$.jobs[1].locality: ['any'] must be text"),
    (_plan(network=3), "$.jobs[1].work.plan.network: 3 must be a network or the name of one"),
    (_plan(stages=[[0]]), "$.jobs[1].work.plan.stages: [0] must be [first layer, layer after the last]"),
    (_plan(stages=[0, 2]), "$.jobs[1].work.plan.stages: 0 must be [first layer, layer after the last]"),
    (_plan(replicas=2), "$.jobs[1].work.plan.replicas: 2 must be a list"),
    (_segment(start_us="0"), "$.segments[0].start_us: '0' must be a whole number"),
    (_segment(start_us=0.5), "$.segments[0].start_us: 0.5 must be a whole number"),
    (_segment(placement=[[0, 1]]), "$.segments[0].placement: [0, 1] must be [server, [replicas of each stage]]"),
    (_segment(placement=[0]), "$.segments[0].placement: 0 must be [server, [replicas of each stage]]"),
    (SCHEDULE % '"segments": [], "refused": [{"job": "a", "need_gpus": 1, "largest_offer_gpus": 0, "reason": []}]',
     "$.refused[0].reason: [] must be one of cluster_too_small, server_too_small"),
    # values against a rule
    (CLUSTER % '"servers": [{"id": "s", "gpus": 0}]', "$.servers[0]: server 's': gpus=0 must be at least 1"),
    (CLUSTER % '"servers": [{"id": "s", "gpus": 8, "gpu_type": "A10O"}]', "[0].gpu_type: unknown GPU type 'A10O'"),
    (CLUSTER % '"servers": [{"id": "s", "gpus": 1}, {"id": "s", "gpus": 2}]', "'s' is the id of two servers"),
    (CLUSTER % '"servers": [], "gpu_types": [{"name": "x", "peak_flops": {}}, {"name": "x", "peak_flops": {}}]',
     "$.gpu_types: names a GPU type twice"),
    (_job(id="a"), "$: instance: jobs='a' is the id of two jobs"),
    (_job(id=""), "$.jobs[1]: job: id='' must be a non-empty string"),
    (_job(gpus=0), "$.jobs[1]: job 'b': gpus=0 must be at least 1"),
    (_job(estimate_s=0), "$.jobs[1]: job 'b': estimate_s=0.0 must be above 0"),
    (_job(weight=0), "$.jobs[1]: job 'b': weight=0.0 must be above 0"),
    (_job(locality="rack"), "$.jobs[1]: job 'b': locality='rack' must be one of any, server, fewest"),
    (_job(work={"kind": "quick", "duration_s": 2}), "$.jobs[1].work.kind: 'quick' must be one of fixed, profiled"),
    (_job(work={"kind": "fixed", "duration_s": 0}), "$.jobs[1].work: work: duration_s=0.0 must be above 0"),
    (_job(work={"kind": "profiled", "iterations": 1, "seconds_per_iteration": {"rack": 1}}), "'rack' is not a"),
    (_job(work={"kind": "profiled", "iterations": 1, "seconds_per_iteration": {"one_server": "1"}}), "must be a num"),
    (_job(release_s=0).replace('"release_s": 0,', '"release_s": 1e400,'), "$.jobs[0].release_s: inf must be finite"),
    (_job(release_s=10**400), "$.jobs[1].release_s: 1000000"),
    (_plan(replicas=[2], global_batch=2), "$.jobs[1]: job 'b': gpus=1 must equal the 2 GPUs of its plan"),
    (_plan(stages=[[0, 1]]), "$.jobs[1].work.plan: training plan: stages=(range(0, 1),) must cover all 2 layers"),
    (_plan(network="no-such-net"), "$.jobs[1].work.plan.network: unknown network 'no-such-net'"),
    (_plan(network={"name": "n", "layers": [{"id": 0}], "edges": []}), "network.layers[0].params: None is missing"),
    (_plan(precision="fp17"), "$.jobs[1].work.plan: unknown precision 'fp17'"),
    (_segment(placement=[[0, [1]], [0, [1]]]), "$.segments[0].placement: placement: server=[0, 0] names"),
    (_segment(placement=[[0, [-1]]]), "replicas=-1 must be at least 0"),
    (SCHEDULE % '"segments": [], "refused": [{"job": "a", "need_gpus": 1, "largest_offer_gpus": 0, "reason": "no"}]',
     "$.refused[0].reason: 'no' must be one of cluster_too_small, server_too_small"),
    (NETWORK % '"layers": [], "edges": []', "network 'n': layers=() must have at least one layer"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "problem"), FIELDS)
def test_bad_field(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(FileError) as error:
        load(path)
    assert problem in str(error.value)
    assert error.value.__suppress_context__, "the fault is told without the converter's own errors"


def test_all_faults_of_all_jobs_are_in_one_error(tmp_path: Path) -> None:
    rows = ", ".join('{"id": "x"}' for _ in range(3))
    (tmp_path / "i.json").write_text(INSTANCE % f'"jobs": [{rows}]')
    with pytest.raises(FileError) as error:
        load(tmp_path / "i.json")
    assert error.value.problem == (
        "$.jobs[0].release_s: is missing; $.jobs[0].work: is missing; $.jobs[0].gpus: is missing; "
        "$.jobs[1].release_s: is missing; $.jobs[1].work: is missing; and 4 more"
    )


@pytest.mark.parametrize("read", [load_network, load_cluster, load_instance, load_schedule])
@pytest.mark.parametrize(("kind", "make"), RECORDS)
def test_only_the_kind_that_was_asked_for(
    tmp_path: Path, kind: str, make: Callable[[], Any], read: Callable[[Path], Any]
) -> None:
    save(make(), tmp_path / "r.json")
    if read.__name__ == f"load_{kind}":
        assert read(tmp_path / "r.json") == make()
    else:
        with pytest.raises(FileError, match=f"is 'frostline/{kind}'; expected frostline/{read.__name__[5:]}"):
            read(tmp_path / "r.json")


# Writing.


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.json"
    save(Cluster.uniform(1), path)
    before = path.read_bytes()

    def fail(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(FileError, match="cannot be written: No space left on device"):
        save(Cluster.uniform(2), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["c.json"]


def test_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(Cluster.uniform(2), tmp_path / "c.json")
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    for name, problem in [
        ("c.txt", "must end in .json or .json.gz"),
        ("c.gz", "must end in .json or .json.gz"),
        ("no/c.json", "cannot be written: no such file or folder"),
        ("folder.json", "cannot be written: is a folder"),
    ]:
        with pytest.raises(FileError, match=problem):
            save(Cluster.uniform(1), tmp_path / name)
    assert [file.name for file in tmp_path.iterdir()] == ["folder.json"]


def test_writing_follows_links_and_keeps_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "real" / "c.json")
    save(Cluster.uniform(1), tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "real" / "c.json").stat().st_mode & 0o777 == 0o666 & ~mask


def test_what_no_file_can_hold(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    one = Placement([(0, (1,))])
    twins = [GpuType(name="x", peak_flops={"fp16": flops}) for flops in (1.0, 2.0)]
    for bad, message in [
        (Schedule(segments=[Segment("a", 0, 1.5, one)]), "segment of job 'a': end_us=1.5 must be a whole number"),
        (Schedule(segments=[Segment(3, 0, 1, one)]), "schedule: job=3 must be text"),
        (Schedule(segments=(), policy=None), "schedule: policy=None must be text"),
        (Cluster(servers=[Server(id=gpu.name + str(i), gpus=1, gpu_type=gpu) for i, gpu in enumerate(twins)]),
         "cluster: gpu_type='x' is the name of two GPU types"),
        (Schedule(segments=(), refused=[replace(schedule().refused[0], need_gpus=1j)]),
         "schedule: content='Object of type complex is not JSON serializable' cannot be written"),
        (object(), "must be a Network, Instance, Schedule or Cluster"),
    ]:  # fmt: skip
        with pytest.raises(InvalidValueError, match=message):
            save(bad, path)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_same_bytes_under_any_name_and_time(tmp_path: Path) -> None:
    save(instance(), tmp_path / "a.json.gz")
    save(instance(), tmp_path / "b.json.gz")
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


def test_a_network_by_the_name_it_is_shipped_under(tmp_path: Path) -> None:
    plan = {"network": "vgg19", "stages": [[0, 19]], "replicas": [1], "global_batch": 8}
    (tmp_path / "i.json").write_text(_job(work={"kind": "training", "iterations": 1, "plan": plan}))
    (work,) = [job.work for job in load_instance(tmp_path / "i.json").jobs if job.id == "b"]
    assert isinstance(work, Training)
    assert work.plan.network == shipped_network("vgg19")
