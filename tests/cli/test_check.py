"""``frostline check`` and ``frostline bound``."""

from __future__ import annotations

import gzip
import json

import pytest

from frostline.problem import Schedule, load_instance, load_schedule, save


@pytest.fixture
def folder(run, trace, tmp_path):
    """Output of a simulation of two policies."""
    out = tmp_path / "run"
    assert run("simulate", trace, "--cluster", "1x8", "--policy", "fifo,asrpt-guard", "--out", out).exit_code == 0
    return out


def test_valid_schedule_and_what_is_proved(run_json, run, folder):
    document = run_json("check", folder / "schedule-asrpt-guard.json.gz")
    assert document["valid"] is True
    assert document["faults"] == []
    text = "\n".join(document["proved"])
    assert "% of the lower bound pointwise" in text
    assert "guard guarantee" in text
    result = run("check", folder / "schedule-fifo.json.gz")
    assert result.stdout.splitlines()[0] == "valid"
    # 322 s of flow against a bound of 116.25 s.
    assert "mean flow within 177 % of the lower bound pointwise" in result.stdout
    assert run("check", folder / "schedule-fifo.json.gz", "--quiet").stdout == "valid\n"


def test_tampered_schedule(run, run_json, folder):
    path = folder / "schedule-fifo.json.gz"
    data = json.loads(gzip.decompress(path.read_bytes()))
    (early,) = [segment for segment in data["segments"] if segment["job"] == "b"]
    early["start_us"] -= 50_000_000
    early["end_us"] -= 50_000_000
    (folder / "bad.json").write_text(json.dumps(data), encoding="utf-8")
    document = run_json("check", folder / "bad.json", code=1)
    assert document["valid"] is False
    assert document["proved"] == []
    (fault,) = document["faults"]
    assert fault["kind"] == "over_capacity"
    assert fault["server"] == "s0"
    assert fault["at_s"] == 50
    assert set(fault) == {"kind", "job", "server", "at_s", "text"}
    result = run("check", folder / "bad.json")
    assert result.exit_code == 1
    assert "not valid: 1 fault" in result.stdout
    assert fault["text"] in result.stdout


def test_broken_guarantee_is_a_fault(run_json, folder):
    instance = load_instance(folder / "instance.json.gz")
    schedule = load_schedule(folder / "schedule-fifo.json.gz", instance)
    second = 1_000_000
    late = [s._replace(start_us=s.start_us + 9**9 * second, end_us=s.end_us + 9**9 * second) for s in schedule.segments]
    claimed = Schedule(segments=tuple(late), policy="asrpt-strict")
    save(claimed, folder / "late.json", instance=instance)
    (fault,) = run_json("check", folder / "late.json", code=1)["faults"]
    assert fault["kind"] == "guarantee"
    assert "asrpt-strict" in fault["text"]


def test_schedule_of_an_unknown_policy_is_checked_all_the_same(run_json, folder):
    instance = load_instance(folder / "instance.json.gz")
    schedule = load_schedule(folder / "schedule-fifo.json.gz", instance)
    save(Schedule(segments=schedule.segments, policy="my own"), folder / "own.json", instance=instance)
    assert run_json("check", folder / "own.json")["valid"] is True


def test_optimal_schedule_is_said_to_be(run_json, run, tmp_path):
    (tmp_path / "one.csv").write_text("id,submit_s,gpus,duration_s\na,0,8,10\n", encoding="utf-8")
    run("simulate", tmp_path / "one.csv", "--cluster", "1x8", "--policy", "fifo", "--out", tmp_path / "run")
    document = run_json("check", tmp_path / "run" / "schedule-fifo.json.gz")
    assert "mean flow is optimal: it equals the lower bound pointwise" in document["proved"]


def test_instance_elsewhere_and_another_one(run, refused, folder, trace, tmp_path):
    moved = tmp_path / "elsewhere.json.gz"
    (folder / "instance.json.gz").rename(moved)
    schedule = folder / "schedule-fifo.json.gz"
    assert "--instance" in refused("check", schedule)
    assert run("check", schedule, "--instance", moved).exit_code == 0
    assert run("convert", trace, tmp_path / "other.json", "--cluster", "2x8").exit_code == 0
    assert "is for the instance 'trace'" in refused("check", schedule, "--instance", tmp_path / "other.json")


def test_files_that_are_no_schedule(refused, folder, tmp_path):
    assert "no such file" in refused("check", tmp_path / "none.json")
    assert "an instance is checked with --certificate" in refused("check", folder / "instance.json.gz")
    assert "expected frostline/schedule" in refused("check", folder / "summary.json")
    cut = folder / "cut.json.gz"
    cut.write_bytes((folder / "schedule-fifo.json.gz").read_bytes()[:60])
    assert "truncated" in refused("check", cut)


@pytest.mark.parametrize(
    # Releases 0, 1, 2. Shortest durations 100, 10, 5; virtual machine of 8 GPUs: flows 86.25, 11.25, 1.25.
    ("method", "flow"),
    [("trivial", 115.0), ("srpt", 98.75), ("pointwise", 116.25)],
)
def test_bounds_by_hand(run_json, trace, method, flow):
    document = run_json("bound", trace, "--cluster", "1x8", "--method", method)
    assert document["total_flow_s"] == pytest.approx(flow)
    assert document["total_completion_s"] == pytest.approx(flow + 3)
    assert document["mean_flow_s"] == pytest.approx(flow / 3)
    assert document["method"] == method
    assert document["certificate"]["total_release_us"] == 3_000_000


@pytest.mark.parametrize("method", ["best", "lagrangian", "pointwise"])
def test_certificate_of_a_bound(run, run_json, folder, method):
    # The optimum is 135 s: the wide job first, then the other two side by side.
    instance, proof = folder / "instance.json.gz", folder / "bound.json.gz"
    bound = run_json("bound", instance, "--method", method, "--certificate", proof)
    assert 116.25 <= bound["total_flow_s"] <= 135
    document = run_json("check", instance, "--certificate", proof)
    assert document["valid"] is True
    (text,) = document["proved"]
    assert text.startswith("no schedule without interruptions has a total completion time below")
    schedule = folder / "schedule-fifo.json.gz"
    document = run_json("check", instance, "--certificate", proof, schedule)
    within = 100 * (322 / (float(text.split()[-2]) - 3) - 1)
    assert f"mean flow within {within:.3g} % of the least that the certificate allows" in document["proved"]
    assert run_json("check", schedule, "--certificate", proof)["proved"] == document["proved"]
    assert run_json("check", proof)["proved"] == [text]
    assert run_json("check", proof, "--instance", instance)["proved"] == [text]


def test_optimal_schedule_by_certificate(run, run_json, tmp_path):
    (tmp_path / "two.csv").write_text("id,submit_s,gpus,duration_s\na,0,5,10\nb,0,5,10\n", encoding="utf-8")
    run("simulate", tmp_path / "two.csv", "--cluster", "1x8", "--policy", "fifo", "--out", tmp_path / "run")
    instance, schedule = tmp_path / "run" / "instance.json.gz", tmp_path / "run" / "schedule-fifo.json.gz"
    run_json("bound", instance, "--certificate", tmp_path / "bound.json")
    proved = run_json("check", instance, "--certificate", tmp_path / "bound.json", schedule)["proved"]
    assert "mean flow is optimal: the certificate proves that none is smaller" in proved


def test_certificate_that_was_changed_or_is_of_another_instance(run, run_json, folder, trace, tmp_path):
    instance, proof = folder / "instance.json.gz", folder / "bound.json"
    run_json("bound", instance, "--method", "lagrangian", "--certificate", proof)
    document = json.loads(proof.read_text(encoding="utf-8"))
    document["bound"] += 1
    proof.write_text(json.dumps(document), encoding="utf-8")
    report = run_json("check", instance, "--certificate", proof, code=1)
    assert [fault["kind"] for fault in report["faults"]] == ["damaged", "unproved"]
    assert report["proved"] == []
    run("convert", trace, tmp_path / "two.json", "--cluster", "1x8", "--jobs", "2")
    run_json("bound", tmp_path / "two.json", "--method", "lagrangian", "--certificate", proof)
    (fault,) = run_json("check", instance, "--certificate", proof, code=1)["faults"]
    assert (fault["kind"], fault["job"], fault["text"]) == ("other_problem", "c", "job 'c' is left out of it")


def test_options_that_do_not_go_together(refused, folder):
    instance, schedule = folder / "instance.json.gz", folder / "schedule-fifo.json.gz"
    assert "leaves no certificate" in refused("bound", instance, "--method", "srpt", "--certificate", folder / "b.json")
    assert "must end in .json" in refused("bound", instance, "--certificate", folder / "b.txt")
    assert "give one schedule" in refused("check", schedule, schedule)
    assert "with --certificate" in refused("check", instance, schedule)
    assert "expected frostline/certificate" in refused("check", instance, "--certificate", schedule)


def test_bound_as_text(run, trace):
    result = run("bound", trace, "--cluster", "1x4")
    assert result.exit_code == 0
    assert "no schedule of these 1 jobs has a mean flow time below 5 s" in result.stdout
    assert "2 jobs that never fit are left out" in result.stdout


def test_unknown_bound(refused, trace):
    assert "did you mean 'pointwise'" in refused("bound", trace, "--cluster", "1x8", "--method", "pointwize")
    assert "--cluster or --pool" in refused("bound", trace)


def test_a_shipped_instance_by_name(run, run_json, tmp_path):
    out = tmp_path / "bound.json"
    assert run("bound", "q06", "--method", "best", "--certificate", out).exit_code == 0
    proved = run_json("check", "q06", "--certificate", out)["proved"]
    assert proved == run_json("check", out, "--instance", "q06")["proved"]
    assert "total completion time below 136 s" in proved[0]
    assert run("check", "q07", "--certificate", out).exit_code == 2
