"""``frostline solve``."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from frostline.offline import Termination, solve
from frostline.problem import Cluster, Fixed, Instance, Job, save
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
        (("q06", "--objective", "makespan", "--certificate", "c.json"), "not on the makespan"),
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
