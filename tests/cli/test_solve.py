"""``frostline solve``."""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import replace

import pytest

from frostline.offline import Termination, certified, solve
from frostline.problem import (
    Cluster,
    Fixed,
    GpuType,
    Instance,
    Job,
    Server,
    Training,
    TrainingPlan,
    save,
    shipped_network,
)
from frostline.traces.library import load_named_instance

KEYS = {"status", "objective", "bound", "gap", "source", "runtime_s", "goal", "method", "termination", "explanations"}


def test_a_trace(run_json, trace):
    document = run_json("solve", trace, "--cluster", "1x8", "--objective", "flow")
    assert set(document) >= KEYS
    assert (document["status"], document["objective"], document["bound"], document["gap"]) == ("optimal", 135, 135, 0)
    assert (document["valid"], document["jobs"], document["goal"]) == (True, 3, "flow")


@pytest.mark.parametrize("method", ["auto", "brute-force", "cpsat", "milp"])
def test_every_method(run_json, method):
    document = run_json("solve", "q06", "--objective", "flow", "--method", method, "--time-limit", 60, "--gap", 0)
    assert (document["method"], document["objective"]) == (method, 135)


def test_text(run):
    result = run("solve", "q06", "--objective", "flow")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[1].split() == ["job", "start", "s", "end", "s", "GPUs", "servers"]
    assert lines[2].split() == ["J2", "1", "11", "8", "s0:8"]
    assert "total flow time 135 s, proved optimal" in lines
    quiet = run("solve", "q06", "--objective", "flow", "--quiet")
    assert quiet.stdout.startswith("total flow time")


def test_a_limit_of_nothing_still_has_a_schedule(run_json, run):
    words = ("solve", "q06", "--objective", "flow", "--hints", "fifo", "--method", "list", "--work", 0)
    document = run_json(*words)
    assert document["status"] == "feasible"
    assert document["termination"] == "work_limit"
    assert 0 < document["gap"] < 1
    assert "gap" in run(*words).stdout


def test_written_schedule_passes_the_check(run, run_json, tmp_path):
    out, proof = tmp_path / "out", tmp_path / "bound.json"
    assert run("solve", "p14", "--objective", "flow", "--out", out, "--certificate", proof).exit_code == 0
    report = run_json("check", out / "schedule.json.gz")
    assert report["valid"]
    assert json.loads(proof.read_text("utf-8"))["format"].startswith("frostline/")


@pytest.mark.parametrize("objective", ["completion", "flow", "makespan"])
@pytest.mark.parametrize("name", ["q06", "q09", "p14"])
def test_optimality_is_certified_and_checked(run, run_json, tmp_path, name, objective):
    out, proof = tmp_path / "out", tmp_path / "proof.json"
    words = ("solve", name, "--variant", "pool", "--objective", objective, "--out", out, "--certificate", proof)
    document = run_json(*words)
    assert document["status"] == "optimal"
    assert document["certificate"]["optimal"] is True
    assert document["certificate"]["bound"] == document["objective"]
    what = "makespan" if objective == "makespan" else "mean flow"
    files = (out / "instance.json.gz", out / "schedule.json.gz", "--certificate", proof)
    report = run_json("check", *files)
    assert report["valid"]
    assert f"{what} is optimal: the certificate proves that none is smaller" in report["proved"]
    assert f"no schedule has a smaller {GOALS[objective]}" in run(*words).stdout
    fifo = run("simulate", out / "instance.json.gz", "--policy", "fifo", "--out", tmp_path / "fifo")
    assert fifo.exit_code == 0
    worse = run_json("check", files[0], tmp_path / "fifo" / "schedule-fifo.json.gz", *files[2:])["proved"][-1]
    assert worse.startswith(f"{what} ")
    assert "optimal" in worse or "% of the least that the certificate allows" in worse


GOALS = {"completion": "total completion time", "flow": "total flow time", "makespan": "makespan"}


@pytest.mark.parametrize("objective", ["flow", "makespan"])
def test_certificate_that_was_changed_is_refused(run, run_json, tmp_path, objective):
    out, proof = tmp_path / "out", tmp_path / "proof.json"
    run("solve", "q06", "--objective", objective, "--out", out, "--certificate", proof)
    document = json.loads(proof.read_text("utf-8"))
    place = next(i for i, node in enumerate(document["proof"]) if isinstance(node, dict))

    def kinds(change) -> list[str]:
        changed = copy.deepcopy(document)
        change(changed)
        content = {name: value for name, value in changed.items() if name != "sha256"}
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        proof.write_text(json.dumps({**content, "sha256": sha256}), "utf-8")
        report = run_json("check", out / "schedule.json.gz", "--certificate", proof, code=1)
        assert not any("certificate proves" in text for text in report["proved"])
        return [fault["kind"] for fault in report["faults"]]

    assert kinds(lambda d: d.update(bound=d["bound"] + 1)) == ["unproved"]
    assert "other_problem" in kinds(lambda d: d["problem"]["release"].__setitem__(0, 7))
    assert kinds(lambda d: d["proof"][place]["prices"][0].__setitem__(0, -1)) == ["negative_price"]

    def drop(d) -> None:
        for column in ("ids", "release", "width", "duration"):
            del d["problem"][column][0]

    assert set(kinds(drop)) & {"other_problem", "malformed"}
    proof.write_text(json.dumps({**document, "bound": document["bound"] - 1}), "utf-8")
    (fault,) = run_json("check", out / "schedule.json.gz", "--certificate", proof, code=1)["faults"]
    assert fault["kind"] == "damaged"


def test_a_certificate_says_what_it_does_not_prove(run, run_json, tmp_path):
    """Two servers of three GPUs run two of the jobs at once, a pool of six would run three."""
    jobs = [Job(id=n, release_s=0, work=Fixed(duration_s=4), gpus=2, locality="server") for n in "xyz"]
    save(Instance(cluster=Cluster.uniform(2, gpus=3), jobs=jobs), tmp_path / "i.json")
    words = ("solve", tmp_path / "i.json", "--objective", "flow", "--certificate", tmp_path / "c.json")
    document = run_json(*words, "--time-limit", 20, "--out", tmp_path)
    assert (document["status"], document["certificate"]["optimal"]) == ("optimal", False)
    assert document["certificate"]["bound"] == 12
    line = run(*words).stdout.splitlines()[-1]
    assert "no schedule has a total flow time below 12 s, gap 25.0 %; what" in line
    assert line.endswith("proved beyond that, it does not")
    proved = run_json(
        "check",
        tmp_path / "schedule.json.gz",
        "--certificate",
        tmp_path / "c.json",
        "--instance",
        tmp_path / "instance.json.gz",
    )["proved"]
    assert "mean flow within 33.3 % of the least that the certificate allows" in proved
    late = run("solve", tmp_path / "i.json", "--deadline", 7, "--certificate", tmp_path / "none.json")
    assert "no certificate: there is no schedule" in late.stdout
    assert not (tmp_path / "none.json").exists()


def test_a_precision_that_no_server_has(run_json, tmp_path):
    plan = TrainingPlan.balanced(shipped_network("resnet50"), gpus=4, stages=1, precision="bf16")
    job = Job(id="t", release_s=0, work=Training(plan=plan, iterations=9), gpus=4, locality="server")
    old, new = (
        GpuType(name=name, peak_flops={"fp16": 1e14, kind: 1e14}) for name, kind in [("a", "fp16"), ("b", "bf16")]
    )
    servers = [Server(id="a", gpus=4, gpu_type=old), Server(id="b", gpus=2, gpu_type=new)]
    save(Instance(cluster=Cluster(servers=servers), jobs=[job]), tmp_path / "i.json")
    (family,) = run_json("solve", tmp_path / "i.json", code=1)["explanations"]
    assert (family["jobs"], family["kinds"]) == (["t"], ["capacity", "type"])
    assert "the largest such server has 2" in family["text"]


def test_a_pool_of_servers(run_json):
    document = run_json("solve", "p14", "--variant", "pool", "--objective", "makespan")
    assert document["cluster"]["servers"] == 1
    assert (document["objective"], document["valid"]) == (10, True)


def test_impossible_deadline(run_json, run):
    document = run_json("solve", "q06", "--deadline", 50, code=1)
    assert (document["status"], document["objective"]) == ("infeasible", None)
    (family,) = document["explanations"]
    assert (family["jobs"], family["kinds"]) == (["J1"], ["deadline"])
    assert "impossible: job 'J1' runs for at least 100 s" in run("solve", "q06", "--deadline", 50).stdout
    assert run_json("solve", "q06", "--deadline", 115)["status"] == "optimal"


def test_jobs_that_never_fit(run_json, tmp_path):
    job = Job(id="x", release_s=0, work=Fixed(duration_s=1), gpus=9)
    save(Instance(cluster=Cluster.uniform(1), jobs=[job]), tmp_path / "wide.json")
    document = run_json("solve", tmp_path / "wide.json", code=1)
    assert (document["status"], document["explanations"][0]["jobs"]) == ("infeasible", ["x"])
    some = Instance(cluster=Cluster.uniform(1), jobs=[job, job.replace(id="y", gpus=8)])
    save(some, tmp_path / "some.json")
    document = run_json("solve", tmp_path / "some.json")
    assert (document["status"], document["refused"]) == ("optimal", 1)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("q06", "--objective", "speed"), "unknown objective 'speed'"),
        (("q06", "--method", "gurobi"), "unknown method 'gurobi'"),
        (("q06", "--variant", "cloud"), "unknown variant 'cloud'"),
        (("q06", "--time-limit", "-1"), "seconds=-1"),
        (("q06", "--gap", "2"), "gap=2"),
        (("q06", "--gap", "x"), "'x' is not a number"),
        (("q06", "--hints", "fito"), "unknown policy 'fito'"),
        (("q06", "--workers", "0"), "workers=0"),
        (("q06", "--certificate", "c.txt"), "c.txt"),
        (("nothing",), "nothing"),
    ],
)
def test_bad_words(refused, words, part):
    assert part in refused("solve", *words)


def test_too_large_is_one_line(refused, tmp_path):
    jobs = [Job(id=f"J{i}", release_s=0, work=Fixed(duration_s=1e6 + i), gpus=3 + i % 4) for i in range(60)]
    save(Instance(cluster=Cluster.uniform(1), jobs=jobs), tmp_path / "long.json")
    assert "would take about" in refused("solve", tmp_path / "long.json", "--method", "brute-force")


def test_ctrl_c_prints_the_best_so_far(run, monkeypatch):
    found = solve(load_named_instance("q06"), objective="flow")
    monkeypatch.setattr(
        "frostline.cli.solve.solve", lambda *_, **__: replace(found, termination=Termination.INTERRUPTED)
    )
    result = run("solve", "q06", "--objective", "flow")
    assert result.exit_code == 130
    assert "total flow time 135 s" in result.stdout


def test_ctrl_c_ends_a_tree_and_leaves_a_bound(run_json, monkeypatch, tmp_path):
    def interrupted(result, *, widths, callback):
        if not callback(0):
            raise KeyboardInterrupt
        return certified(result, widths=widths, callback=callback)

    monkeypatch.setattr("frostline.cli.solve.certified", interrupted)
    words = ("solve", "q06", "--objective", "makespan", "--certificate", tmp_path / "c.json")
    document = run_json(*words, "--out", tmp_path)
    assert (document["status"], document["certificate"]["optimal"]) == ("optimal", False)
    assert run_json("check", tmp_path / "schedule.json.gz", "--certificate", tmp_path / "c.json")["valid"]


def test_a_schedule_that_breaks_a_rule_is_an_error(run, monkeypatch):
    found = solve(load_named_instance("q06"), objective="flow")
    broken = replace(found.schedule, segments=found.schedule.segments[1:])
    monkeypatch.setattr("frostline.cli.solve.solve", lambda *_, **__: replace(found, schedule=broken))
    result = run("solve", "q06", "--objective", "flow")
    assert result.exit_code == 1
    assert "breaks 1 rules" in result.stderr


def test_many_jobs_have_no_hints(run_json, monkeypatch):
    monkeypatch.setattr("frostline.cli.solve._MOST_HINT_JOBS", 2)
    assert run_json("solve", "q06", "--objective", "flow")["objective"] == 135


def test_the_policy_replays_the_same_flow(run, run_json, refused, trace, tmp_path):
    solved = run_json("solve", trace, "--cluster", "1x8", "--objective", "flow")
    words = ("simulate", trace, "--cluster", "1x8", "--policy", "offline-optimal,fifo", "--out", tmp_path / "run")
    replayed, fifo = run_json(*words)["results"]
    assert replayed["mean_flow_s"] * 3 == pytest.approx(solved["objective"])
    assert (replayed["valid"], fifo["mean_flow_s"] > replayed["mean_flow_s"]) == (True, True)
    assert run("check", tmp_path / "run" / "schedule-offline-optimal.json.gz").exit_code == 0
    assert "offline-optimal" in run("list", "policies").stdout
    many = "".join(f"J{i},0,1,1\n" for i in range(300))
    (tmp_path / "many.csv").write_text(f"id,submit_s,gpus,duration_s\n{many}", encoding="utf-8")
    assert "offline-optimal would take about" in refused(
        "simulate", tmp_path / "many.csv", "--cluster", "1x8", "--policy", "offline-optimal", "--quiet"
    )
