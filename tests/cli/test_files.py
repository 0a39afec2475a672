"""``frostline convert``, ``generate``, ``show`` and ``list``."""

from __future__ import annotations

import pytest

from frostline.policies import policy_names
from frostline.problem import Cluster, load_instance, save
from frostline.problem.library import network_names
from frostline.traces import generate_recurring_jobs, read_trace


def test_convert_round_trip(run, run_json, trace, tmp_path):
    document = run_json("convert", trace, tmp_path / "i.json.gz", "--cluster", "2x8")
    assert document["jobs"] == 3
    assert document["trace"]["rows_kept"] == 3
    instance = load_instance(tmp_path / "i.json.gz")
    assert instance.cluster.capacities == (8, 8)
    assert [job.user for job in instance.jobs] == ["ann", "bob", "ann"]
    result = run("convert", tmp_path / "i.json.gz", tmp_path / "t.csv")
    assert result.exit_code == 0
    assert "written to" in result.stdout
    assert read_trace(tmp_path / "t.csv").jobs == instance.jobs
    assert run("convert", trace, tmp_path / "t2.csv", "--quiet").stdout == ""
    assert (tmp_path / "t2.csv").read_bytes() == (tmp_path / "t.csv").read_bytes()


def test_convert_counts_repairs(run, tmp_path):
    (tmp_path / "in.csv").write_text("id,submit,gpus,duration\na,0,1.5,5\nb,0,1,-5\nc,0,0,5\n", encoding="utf-8")
    result = run("convert", tmp_path / "in.csv", tmp_path / "out.csv", "--repair")
    assert result.exit_code == 0
    assert "rows read 3 = kept 1 + dropped 2 (cpu_only: 1, negative_duration: 1)" in result.stdout
    assert "repaired 1 (fractional_gpus: 1)" in result.stdout
    assert [job.gpus for job in read_trace(tmp_path / "out.csv").jobs] == [2]


@pytest.mark.parametrize(
    ("target", "words", "said"),
    [
        ("out.txt", (), "must end in"),
        ("out.json", (), "--cluster or --pool"),
        ("out.csv", ("--load", "0.9"), "--cluster or --pool"),
        ("none/out.csv", (), "cannot be written"),
    ],
)
def test_convert_refuses(refused, trace, tmp_path, target, words, said):
    assert said in refused("convert", trace, tmp_path / target, *words)
    assert [path.name for path in tmp_path.iterdir()] == ["trace.csv"]


def test_generate_is_seeded(run, run_json, tmp_path):
    words = ("generate", "--jobs", 50, "--cluster", "4x8", "--load", 0.8, "--cv", 1, "--seed", 7, "--out")
    document = run_json(*words, tmp_path / "a.csv")
    assert document["trace"]["load"] == pytest.approx(0.8)
    assert (document["jobs"], document["seed"]) == (50, 7)
    assert run(*words, tmp_path / "b.csv").exit_code == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert run(*words, tmp_path / "c.csv", "--seed", 8).exit_code == 0
    assert (tmp_path / "a.csv").read_bytes() != (tmp_path / "c.csv").read_bytes()


def test_generate_an_instance(run_json, tmp_path):
    words = ("--jobs", 20, "--pool", 16, "--histogram", "mixed", "--locality", "server", "--out", tmp_path / "i.json")
    run_json("generate", *words)
    instance = load_instance(tmp_path / "i.json")
    assert instance.cluster.capacities == (16,)
    assert {job.locality.value for job in instance.jobs} == {"server"}
    assert instance.provenance["seed"] == "0"


def test_generate_recurring_jobs(run, run_json, tmp_path):
    words = ("generate", "--recurring", "--jobs", 200, "--cluster", "4x8", "--seed", 3)
    document = run_json(*words, "--out", tmp_path / "t.csv")
    assert document["trace"]["load"] == pytest.approx(0.9)
    assert document["trace"]["estimates"] == 200
    jobs = read_trace(tmp_path / "t.csv", rebase=False).jobs
    assert jobs == generate_recurring_jobs(200, seed=3, gpus=32)
    options = ("--failed", 0, "--killed", 0, "--drift", 0, "--new-users", 0, "--recurring-share", 1)
    run_json(*words, *options, "--estimate-factor", 4, "--work", "profiled", "--out", tmp_path / "i.json")
    instance = load_instance(tmp_path / "i.json")
    figures = {"failed_share": 0, "killed_share": 0, "drift": 0, "new_users": 0, "recurring_share": 1}
    made = generate_recurring_jobs(200, seed=3, gpus=32, work="profiled", estimate_factor=4, **figures)
    assert instance.jobs == made
    assert instance.provenance["made"] == "frostline generate --recurring"
    assert (instance.provenance["work"], instance.provenance["failed_share"]) == ("profiled", "0")
    assert "estimates of users 200, median" in run("show", tmp_path / "t.csv").stdout


def test_convert_keeps_estimates(run_json, tmp_path):
    (tmp_path / "in.csv").write_text("id,submit,gpus,duration,walltime\na,0,1,5,60\nb,0,1,5,\n", encoding="utf-8")
    run_json("convert", tmp_path / "in.csv", tmp_path / "i.json", "--pool", 4)
    run_json("convert", tmp_path / "i.json", tmp_path / "out.csv")
    assert [job.estimate_s for job in read_trace(tmp_path / "out.csv").jobs] == [60, None]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--jobs", "5", "--cluster", "1x8", "--drift", "1"), "--drift goes with --recurring"),
        (("--jobs", "5", "--cluster", "1x8", "--work", "fixed"), "--work goes with --recurring"),
        (("--jobs", "5", "--cluster", "1x8", "--recurring", "--work", "profiled"), "a CSV trace holds durations only"),
        (("--jobs", "5", "--cluster", "1x8", "--recurring", "--work", "quick"), "unknown kind of work 'quick'"),
        (("--jobs", "5", "--cluster", "1x8", "--recurring", "--failed", "2"), "failed_share"),
        (("--jobs", "0", "--cluster", "1x8"), "at least 1"),
        (("--jobs", "5"), "--cluster or --pool"),
        (("--jobs", "5", "--cluster", "1x8", "--load", "0"), "load"),
        (("--jobs", "5", "--cluster", "1x8", "--cv", "nan"), "finite"),
        (("--jobs", "5", "--cluster", "1x8", "--seed", "-1"), "seed"),
        (("--jobs", "5", "--cluster", "1x8", "--histogram", "phily"), "did you mean 'philly'"),
        (("--jobs", "5", "--cluster", "1x8", "--locality", "rack"), "locality"),
    ],
)
def test_generate_refuses(refused, tmp_path, words, said):
    assert said in refused("generate", *words, "--out", tmp_path / "g.csv")
    assert not list(tmp_path.iterdir())


def test_show_trace(run, run_json, trace):
    summary = run_json("show", trace, "--cluster", "1x8")["trace"]
    assert summary == run_json("show", "trace", trace, "--cluster", "1x8")["trace"]
    assert (summary["rows_read"], summary["jobs"], summary["gpu_histogram"]) == (3, 3, {"2": 1, "6": 1, "8": 1})
    assert summary["gpu_hours"] == pytest.approx((600 + 80 + 10) / 3600)
    assert summary["load"] == pytest.approx(690 / (2 * 8))
    result = run("show", trace)
    assert result.exit_code == 0
    assert "rows read 3 = kept 3" in result.stdout


def test_show_everything_else(run, run_json, trace, tmp_path):
    run("simulate", trace, "--cluster", "1x8", "--policy", "fifo", "--out", tmp_path / "run")
    save(Cluster.uniform(3), tmp_path / "c.json")
    instance = run_json("show", tmp_path / "run" / "instance.json.gz")["instance"]
    assert (instance["jobs"], instance["cluster"]["text"]) == (3, "1x8")
    schedule = run_json("show", tmp_path / "run" / "schedule-fifo.json.gz")["schedule"]
    assert (schedule["jobs"], schedule["end_s"], schedule["peak_gpus"]) == (3, 115, 8)
    assert run_json("show", tmp_path / "c.json")["cluster"]["gpus"] == 24
    assert run_json("show", "gpt2")["model"]["params"] == 124_439_808
    assert run_json("show", "q06")["instance"]["jobs"] == 3
    for words in (("model", "gpt2"), ("instance", "q06"), ("c.json",), ("schedule", "run/schedule-fifo.json.gz")):
        name = tmp_path / words[-1] if "json" in words[-1] else words[-1]
        result = run("show", *words[:-1], name)
        assert result.exit_code == 0
        assert result.stdout.strip()
        assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gpt3",), "did you mean 'gpt2'"),
        (("none.json",), "no such file"),
        (("none.csv",), "no such file"),
        (("modle", "gpt2"), "did you mean 'model'"),
        (("model", "gpt2", "vgg19"), "a kind and a name"),
        (("model", "gpt2", "--repair"), "options for traces"),
        (("trace", "q06"), "is an instance, not a trace"),
        ((), "Missing argument"),
    ],
)
def test_show_refuses(refused, words, said):
    assert said in refused("show", *words)


def test_show_trace_as_instance(refused, trace):
    assert "is a trace, not an instance" in refused("show", "instance", trace)


def test_list(run, run_json):
    document = run_json("list")
    assert [row["name"] for row in document["policies"]] == list(policy_names(offline=True))
    assert [row["name"] for row in document["models"]] == list(network_names())
    assert {"instances", "formats", "gpus"} < set(document)
    assert set(run_json("list", "gpus")) == {"format", "version", "gpus"}
    text = run("list").stdout
    for heading in ("policies:", "models:", "instances:", "formats:", "gpus:", "plots:"):
        assert heading in text
    assert "fifo" in run("list", "policies", "--quiet").stdout


def test_list_refuses(refused):
    assert "did you mean 'models'" in refused("list", "model")
