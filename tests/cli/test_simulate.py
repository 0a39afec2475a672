"""``frostline simulate``."""

from __future__ import annotations

import json

import pytest

from frostline.cli.simulate import file_name, parse_policies
from frostline.errors import InvalidValueError
from frostline.policies import registry
from frostline.policies.list_policy import fifo
from frostline.prediction import OnlinePredictor
from frostline.problem import Cluster, Elastic, Instance, Job, Schedule, load_instance, load_schedule, save
from frostline.report import passed

RESULT_KEYS = {
    "policy",
    "parameters",
    "jobs",
    "refused",
    "refused_jobs",
    "submitted",
    "unfinished",
    "mean_flow_s",
    "median_flow_s",
    "p99_flow_s",
    "max_flow_s",
    "mean_wait_s",
    "makespan_s",
    "utilisation",
    "bound_mean_flow_s",
    "bound_method",
    "flow_over_bound",
    "guarantee",
    "prediction",
    "evictions",
    "valid",
    "runtime_s",
}


def test_results_by_hand(run_json, trace):
    document = run_json("simulate", trace, "--cluster", "1x8", "--policy", "fifo,easy")
    assert set(document) == {"format", "version", "trace", "cluster", "refusals", "results"}
    assert document["cluster"]["servers"] == 1
    assert document["trace"]["rows_read"] == document["trace"]["rows_kept"] == 3
    strict, backfill = document["results"]
    assert set(strict) >= RESULT_KEYS
    assert [strict["policy"], backfill["policy"]] == ["fifo", "easy"]
    assert 3 * strict["mean_flow_s"] == pytest.approx(322)
    assert 3 * backfill["mean_flow_s"] == pytest.approx(214)
    assert (strict["makespan_s"], backfill["makespan_s"]) == (115, 110)
    # The virtual machine of 8 GPUs: flows 86.25, 11.25 and 1.25; one by one, no less than 5, 10 and 100.
    assert 3 * strict["bound_mean_flow_s"] == pytest.approx(116.25)
    assert strict["flow_over_bound"] == pytest.approx(322 / 116.25)
    assert strict["valid"]
    assert strict["guarantee"] is None


def test_guarantee_is_reported(run_json, run, trace):
    (row,) = run_json("simulate", trace, "--cluster", "1x8", "--policy", "asrpt-guard")["results"]
    guarantee = row["guarantee"]
    assert guarantee["form"] == "guard"
    assert guarantee["holds"] is True
    assert guarantee["worst_slack_s"] >= 0
    assert {"G", "B", "theta", "gamma_s"} <= set(guarantee["parameters"])
    text = run("simulate", trace, "--cluster", "1x8", "--policy", "asrpt-guard").stdout
    assert "Γ = " in text
    assert "θ = " in text
    assert "holds" in text


def test_text_has_summary_one_table_bound_and_account(run, trace):
    result = run("simulate", trace, "--cluster", "1x8", "--policy", "fifo,sjf:discipline=strict")
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert "rows read 3 = kept 3 + dropped 0" in lines[1]
    (header,) = [line for line in lines if line.startswith("policy ")]
    assert "flow/bound" in header
    assert lines[lines.index(header) + 2].startswith("sjf:discipline=strict ")
    assert any(line.startswith("lower bound (pointwise)") and "38.75 s" in line for line in lines)
    assert "submitted 3 = finished 3 + refused 0" in lines
    assert all(line == line.rstrip() for line in lines)


def test_quiet_prints_the_table_only(run, trace):
    result = run("simulate", trace, "--cluster", "1x8", "--policy", "fifo", "--quiet")
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["policy", "fifo"]


def test_out_holds_instance_schedules_and_summary(run, run_json, trace, tmp_path):
    out = tmp_path / "deep" / "run"
    document = run_json("simulate", trace, "--cluster", "1x8", "--policy", "fifo,sjf:discipline=strict", "--out", out)
    names = {"instance.json.gz", "schedule-fifo.json.gz", "schedule-sjf-discipline=strict.json.gz", "summary.json"}
    assert {path.name for path in out.iterdir()} == names
    assert json.loads((out / "summary.json").read_text(encoding="utf-8")) == document
    instance = load_instance(out / "instance.json.gz")
    assert [job.id for job in instance.jobs] == ["a", "b", "c"]
    assert load_schedule(out / "schedule-fifo.json.gz", instance).completion_us["b"] == 110_000_000
    # The instance file brings its cluster, and gives the same results.
    again = run_json("simulate", out / "instance.json.gz", "--policy", "fifo")
    assert again["cluster"] == document["cluster"]
    assert again["results"][0]["mean_flow_s"] == document["results"][0]["mean_flow_s"]
    assert run("check", out / "schedule-fifo.json.gz").exit_code == 0


def test_wide_job_is_refused_by_name_and_the_run_goes_on(run_json, run, trace):
    trace.write_text(trace.read_text() + "wide,3,9,5,bob\n", encoding="utf-8")
    document = run_json("simulate", trace, "--cluster", "1x8", "--policy", "fifo,sjf")
    (refusal,) = document["refusals"]
    assert refusal == {"job": "wide", "need_gpus": 9, "largest_offer_gpus": 8, "reason": "cluster_too_small"}
    for row in document["results"]:
        assert row["refused_jobs"] == ["wide"]
        assert (row["submitted"], row["jobs"], row["refused"], row["unfinished"]) == (4, 3, 1, 0)
    result = run("simulate", trace, "--cluster", "1x8", "--policy", "fifo")
    assert result.exit_code == 0
    assert "job 'wide': gpus=9 but the whole cluster has 8" in result.stdout
    assert "submitted 4 = finished 3 + refused 1" in result.stdout


def test_only_the_first_refused_jobs_are_shown(run, trace):
    rows = "".join(f"w{i},3,9,5,bob\n" for i in range(5))
    trace.write_text(trace.read_text() + rows, encoding="utf-8")
    text = run("simulate", trace, "--cluster", "1x8", "--policy", "fifo").stdout
    assert "refused 5" in text
    assert "'w2'" in text
    assert "'w3'" not in text
    assert "and 2 more" in text


def test_locality_decides_what_fits(run_json, trace):
    rows = run_json("simulate", trace, "--cluster", "2x6", "--policy", "fifo")["results"]
    assert rows[0]["refused"] == 0
    rows = run_json("simulate", trace, "--cluster", "2x6", "--policy", "fifo", "--locality", "server")["results"]
    assert rows[0]["refused_jobs"] == ["b"]


def test_pool_jobs_load_and_time_unit(run_json, trace):
    document = run_json("simulate", trace, "--pool", "8", "--policy", "fifo", "--jobs", "2", "--load", "0.5")
    assert document["trace"]["jobs"] == 2
    assert document["trace"]["load"] == pytest.approx(0.5)
    assert document["results"][0]["submitted"] == 2
    trace.write_text("id,submit,gpus,duration\na,0,1,2\n", encoding="utf-8")
    document = run_json("simulate", trace, "--pool", "8", "--policy", "fifo", "--time-unit", "min")
    assert document["results"][0]["mean_flow_s"] == 120


def test_zone_and_duplicates(run_json, tmp_path):
    trace = tmp_path / "trace.csv"
    row = "2017-11-05 00:30:00,1,60\n"
    trace.write_text("timestamp,num_gpus,duration\n" + row + row + "2017-11-05 03:30:00,1,60\n", encoding="utf-8")
    words = ("simulate", trace, "--pool", 8, "--policy", "fifo")
    assert run_json(*words)["trace"]["span_s"] == 3 * 3600
    # The clocks of Los Angeles were put back by an hour in between.
    summary = run_json(*words, "--zone", "America/Los_Angeles", "--duplicates", "drop")["trace"]
    assert summary["span_s"] == 4 * 3600
    assert summary["dropped"] == {"duplicate_row": 1}


def test_shipped_instance_by_name(run_json):
    document = run_json("simulate", "q06", "--policy", "fifo")
    assert document["results"][0]["mean_flow_s"] * 3 == pytest.approx(322)


def test_a_cluster_file_replaces_the_cluster(run_json, run, trace, tmp_path):
    (tmp_path / "c.json").write_text(
        '{"format": "frostline/cluster", "version": 1, "servers": [{"id": "x", "gpus": 8}, {"id": "y", "gpus": 4}]}',
        encoding="utf-8",
    )
    document = run_json("simulate", trace, "--cluster", tmp_path / "c.json", "--policy", "fifo")
    assert document["cluster"]["servers_by_gpus"] == {"4": 1, "8": 1}
    assert run_json("simulate", "q06", "--cluster", "2x8", "--policy", "fifo")["cluster"]["text"] == "2x8"


def test_instance_without_jobs(run_json, tmp_path):
    (tmp_path / "none.json").write_text(
        '{"format": "frostline/instance", "version": 1, "cluster": {"servers": [{"id": "x", "gpus": 8}]}, "jobs": []}',
        encoding="utf-8",
    )
    (row,) = run_json("simulate", tmp_path / "none.json", "--policy", "fifo")["results"]
    assert (row["submitted"], row["mean_flow_s"], row["flow_over_bound"]) == (0, None, None)


def test_cluster_without_gpus_refuses_every_job(run_json, tmp_path):
    cluster = tmp_path / "none.json"
    cluster.write_text('{"format": "frostline/cluster", "version": 1, "servers": []}', encoding="utf-8")
    for row in run_json("simulate", "q06", "--cluster", cluster, "--policy", "fifo,asrpt-guard")["results"]:
        assert (row["jobs"], row["refused"], row["utilisation"]) == (0, 3, None)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("fifo,sfj", "did you mean 'sjf'"),
        ("fifo,fifo", "named twice"),
        ("fifo,", "unknown policy ''"),
        ("sjf:discipline", "must read name=value"),
        ("sjf:disc=strict", "disc"),
        ("sjf:discipline=lax", "lax"),
    ],
)
def test_bad_policies_fail_before_anything_is_simulated(refused, monkeypatch, trace, tmp_path, policy, said):
    monkeypatch.setattr("frostline.cli.simulate.simulate", pytest.fail)
    assert said in refused("simulate", trace, "--cluster", "1x8", "--policy", policy, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_invalid_schedule_exits_with_one(run, run_json, monkeypatch, trace):
    from frostline.verify import Fault, FaultKind, Report

    fault = Fault(kind=FaultKind.MISSING_JOB, job="a", text="job 'a' neither runs nor is refused")
    monkeypatch.setattr("frostline.cli.simulate.check_schedule", lambda *_: Report(faults=(fault,)))
    (row,) = run_json("simulate", trace, "--cluster", "1x8", "--policy", "fifo", code=1)["results"]
    assert row["valid"] is False
    result = run("simulate", trace, "--cluster", "1x8", "--policy", "fifo")
    assert result.exit_code == 1
    assert "no: 1 faults" in result.stdout


def test_interrupt_exits_with_130(run, monkeypatch, trace):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("frostline.cli.simulate.simulate", interrupt)
    assert run("simulate", trace, "--cluster", "1x8", "--policy", "fifo").exit_code == 130


def test_out_that_cannot_be_written(refused, monkeypatch, trace, tmp_path):
    monkeypatch.setattr("frostline.cli.simulate.simulate", pytest.fail)
    assert "is a file" in refused("simulate", trace, "--cluster", "1x8", "--policy", "fifo", "--out", trace)
    assert "folder" in refused("simulate", trace, "--cluster", "1x8", "--policy", "fifo", "--out", trace / "run")


PREDICTION_KEYS = {
    "predictor",
    "jobs",
    "cold_start_share",
    "overruns",
    "repredictions",
    "most_out_of_order_gpus",
    "a",
    "b",
    "D",
}


def test_predicted_sizes(run_json, run, trace, tmp_path):
    words = ("simulate", trace, "--cluster", "1x8", "--policy", "asrpt-strict,sjf", "--predict", "last-finished")
    strict, shortest = run_json(*words, "--out", tmp_path / "run")["results"]
    for row in (strict, shortest):
        facts = row["prediction"]
        assert set(facts) == PREDICTION_KEYS
        assert (facts["predictor"], facts["jobs"], facts["cold_start_share"]) == ("last-finished", 3, 1)
        # Nothing has finished when the jobs arrive: all are taken to last an hour, and last 100, 10 and 5 s.
        assert (facts["a"], facts["b"], facts["D"]) == (36, 720, 20)
        assert row["valid"]
    assert strict["guarantee"]["holds"]
    measured = strict["guarantee"]["parameters"]
    assert (measured["a"], measured["b"], measured["D"], measured["E_measured"]) == (36, 720, 20, 0)
    assert shortest["guarantee"] is None
    text = run(*words).stdout
    assert "a = 36, b = 720, D = 20, E′ = 0; holds" in text
    assert "sjf: 3 jobs predicted by last-finished, 100.0 % cold starts, distortion 20 (a = 36, b = 720)" in text
    # The file of the schedule does not tell what was predicted: its guarantee cannot be checked, its rules can.
    document = run_json("check", tmp_path / "run" / "schedule-asrpt-strict.json.gz")
    assert document["valid"] is True
    assert not any("guarantee" in line for line in document["proved"])


def test_known_sizes_may_be_asked_for_by_name(run_json, trace):
    words = ("simulate", trace, "--cluster", "1x8", "--policy", "asrpt")
    (plain,), (exact,) = (run_json(*words, *more)["results"] for more in ((), ("--predict", "exact")))
    assert plain["prediction"] is exact["prediction"] is None
    del plain["runtime_s"], exact["runtime_s"]
    assert plain == exact


def test_seed_goes_to_the_model(monkeypatch, run, trace):
    seeds = []

    def made(model, *, seed):
        seeds.append((model, seed))
        return OnlinePredictor(model, seed=seed)

    monkeypatch.setattr("frostline.cli.simulate.OnlinePredictor", made)
    words = ("simulate", trace, "--cluster", "1x8", "--policy", "fifo,sjf", "--predict", "median")
    assert run(*words, "--seed", "5").exit_code == 0
    assert run(*words).exit_code == 0
    assert seeds == [("median", 5)] * 2 + [("median", 0)] * 2


def test_a_model_that_does_not_exist_is_named(refused, trace):
    words = ("simulate", trace, "--cluster", "1x8", "--policy", "fifo", "--predict")
    assert "unknown model 'medain'; did you mean 'median'" in refused(*words, "medain")
    assert "parameter of model 'ewma'" in refused(*words, "ewma:beta=1")


def test_preemptive_policies(run_json, run, trace, tmp_path):
    policies = "srtf:restart_s=0.5,las:thresholds=60:restart_s=0"
    words = ("simulate", trace, "--cluster", "1x8", "--policy", policies, "--out", tmp_path / "run")
    shortest, attained = run_json(*words)["results"]
    # a gives way to b at 1, b to c at 2, beside which a runs; at 7 b goes on until 16.5, when 94.5 s of a are left.
    assert shortest["valid"]
    assert attained["valid"]
    assert (shortest["evictions"], shortest["makespan_s"]) == (3, 111.5)
    path = tmp_path / "run" / file_name("srtf:restart_s=0.5")
    document = run_json("check", path)
    assert document["valid"] is True
    assert "3 evictions, 0.5 s of restart after each eviction" in document["proved"][0]
    schedule = load_schedule(path)
    forged = Schedule.of(schedule.segments, schedule.refused, schedule.policy)
    save(forged, tmp_path / "run" / "forged.json")
    assert {fault["kind"] for fault in run_json("check", tmp_path / "run" / "forged.json", code=1)["faults"]} == {
        "interrupted"
    }


def test_seed_goes_to_policies_that_draw(monkeypatch):
    class Drawing:
        def __init__(self, seed: int = 0) -> None:
            self.name, self.parameters = "drawing", {"seed": seed}

    monkeypatch.setattr(registry, "_factories", lambda: {"drawing": lambda: Drawing, "fifo": lambda: fifo})
    policies = parse_policies("drawing,drawing:seed=3,fifo", seed=7)
    assert [policy.parameters.get("seed") for policy in policies.values()] == [7, 3, None]


def test_policies_with_blanks_between():
    assert list(parse_policies(" fifo , sjf ")) == ["fifo", "sjf"]
    with pytest.raises(InvalidValueError, match="twice"):
        parse_policies("sjf, sjf")


def test_file_names_are_safe():
    assert file_name("a/b:c d=..\\e") == "schedule-a-b-c-d=..-e.json.gz"


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({}, True),
        ({"guarantee": None}, True),
        ({"valid": False}, False),
        ({"unfinished": 1}, False),
        ({"guarantee": {"holds": False}}, False),
    ],
)
def test_what_counts_as_passed(change, outcome):
    assert passed({"valid": True, "unfinished": 0, "guarantee": {"holds": True}} | change) is outcome


@pytest.fixture
def elastic(tmp_path):
    table = {"one_server": {1: (2.0, 1.0)}}
    work = Elastic(
        iterations=1000,
        widths=(1,),
        seconds_per_iteration=table,
        compute_shares=(0, 1),
        family="cnn",
        quality_budget_points=0.5,
    )
    jobs = [Job(id=name, release_s=0, gpus=1, work=work) for name in "ab"]
    save(Instance(cluster=Cluster.pool(2), jobs=jobs), tmp_path / "elastic.json")
    return tmp_path / "elastic.json"


def test_freezing_is_reported_where_there_is_some(run_json, run, elastic):
    plain, frozen = run_json("simulate", elastic, "--policy", "asrpt,icefrog-rigid")["results"]
    assert "accuracy" not in plain
    assert (plain["bound_choices"], frozen["bound_choices"]) == ("asked", "levels")
    assert (plain["level_changes"], frozen["level_changes"]) == (0, 2)
    assert frozen["mean_flow_s"] < plain["mean_flow_s"] == plain["bound_mean_flow_s"] == 2000
    assert frozen["bound_mean_flow_s"] <= frozen["mean_flow_s"]
    assert frozen["guarantee"]["holds"]
    assert frozen["valid"]
    facts = frozen["accuracy"]
    assert (facts["jobs"], facts["frozen"], facts["over_budget_share"]) == (2, 2, 0)
    assert 0 < facts["mean_lost_points"] <= facts["mean_believed_points"] <= 0.5 + 1e-9
    assert [family["family"] for family in facts["families"]] == ["cnn"]
    text = run("simulate", elastic, "--policy", "asrpt,icefrog-rigid").stdout
    assert "no schedule on the GPUs asked for, without freezing, of these 2 jobs" in text
    assert "no schedule on the GPUs asked for, freezing included, of these 2 jobs" in text
    assert "icefrog-rigid: froze 2 of 2 jobs, which lost" in text


def test_a_frozen_schedule_is_checked_from_its_file(run, elastic, tmp_path):
    run("simulate", elastic, "--policy", "icefrog-rigid", "--out", tmp_path / "out")
    result = run("check", tmp_path / "out" / "schedule-icefrog-rigid.json.gz")
    assert result.exit_code == 0
    assert "2 changes of freeze level, 0.1 s for each" in result.stdout
    assert "the guard guarantee of icefrog-rigid:form=asrpt" in result.stdout


def test_planned_levels_need_known_sizes(run, elastic):
    result = run("simulate", elastic, "--policy", "icefrog-rigid", "--predict", "median")
    assert result.exit_code == 2
    assert "policy 'icefrog-rigid' must know the sizes" in result.stderr


class TestEngine:
    @pytest.fixture(autouse=True)
    def _compiling(self, monkeypatch):
        monkeypatch.setenv("FROSTLINE_JIT", "1")

    def test_the_compiled_twin_gives_the_same_results(self, run_json, trace):
        pytest.importorskip("numba")
        words = ("simulate", trace, "--strict", "--cluster", "1x8", "--policy", "easy,asrpt")
        documents = [run_json(*words, "--engine", engine) for engine in ("reference", "compiled", "auto")]
        for document in documents:
            for row in document["results"]:
                del row["runtime_s"]
        assert documents[0] == documents[1] == documents[2]

    def test_what_it_does_not_cover_is_said(self, refused, trace):
        pytest.importorskip("numba")
        words = ("simulate", trace, "--strict", "--cluster", "1x8", "--engine", "compiled", "--policy")
        assert "does not cover policy 'las'" in refused(*words, "las", "--quiet")
        assert "does not cover predicted sizes" in refused(*words, "fifo", "--predict", "median", "--quiet")

    def test_an_unknown_one_is_refused(self, refused, trace):
        words = ("simulate", trace, "--strict", "--cluster", "1x8", "--policy", "fifo", "--quiet", "--engine", "fast")
        assert "fast" in refused(*words)
