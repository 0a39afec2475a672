"""``frostline predict``."""

from __future__ import annotations

import csv
import gzip
import math
import re
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from frostline.cli.output import Output
from frostline.cli.predict import parse_models
from frostline.errors import InvalidValueError
from frostline.prediction import registry

RESULT_KEYS = {
    "model",
    "jobs",
    "median_abs_log_ratio",
    "share_within_2x",
    "distortion",
    "coverage",
    "cold_start_share",
    "seconds_per_prediction",
    "fallbacks",
    "learned",
    "dropped_targets",
    "sources",
}
ROWS = "id,submit_s,gpus,duration_s,user\na,0,1,10,ann\nb,5,1,20,ann\nc,10,1,30,ann\nd,25,1,20,ann\n"


@pytest.fixture
def four(tmp_path):
    """Four jobs of one group: when the last is submitted, the first two have finished, the third has not."""
    path = tmp_path / "four.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


def table_of(path):
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def timeless(document):
    return [
        {key: value for key, value in row.items() if key != "seconds_per_prediction"} for row in document["results"]
    ]


def test_results_by_hand(run_json, four, tmp_path):
    document = run_json("predict", four, "--model", "last-finished", "--out", tmp_path / "said.csv")
    assert set(document) == {"format", "version", "trace", "finishing_times", "unit", "results"}
    assert document["trace"]["rows_kept"] == 4
    assert document["finishing_times"] == {"starts_known": 0, "releases_taken_as_starts": 4}
    assert document["unit"] == "s"
    (row,) = document["results"]
    assert set(row) == RESULT_KEYS
    # Ratios: 360 and 180 by default, 10 / 30, and 20 / 20.
    assert row["median_abs_log_ratio"] == pytest.approx((math.log(3) + math.log(180)) / 2)
    assert row["share_within_2x"] == 0.25
    assert row["distortion"]["0"] == {"a": pytest.approx(1 / 3), "b": 360.0, "D": pytest.approx(1080)}
    assert row["cold_start_share"] == 0.5
    assert (row["fallbacks"], row["learned"], row["dropped_targets"]) == (2, 2, 0)
    said = table_of(tmp_path / "said.csv")
    assert [(line["job"], float(line["predicted"])) for line in said] == [
        ("a", 3600),
        ("b", 3600),
        ("c", 10),
        ("d", 20),
    ]
    assert [line["cold_start"] for line in said] == ["true", "true", "false", "false"]
    assert said[3]["source"] == "last-finished: user+gpus"


def test_known_starts_put_finishes_off(run_json, four, tmp_path):
    four.write_text("id,submit_s,start_s,gpus,duration_s,user\na,0,0.5,1,10,ann\nb,10,10,1,5,ann\n", encoding="utf-8")
    out = tmp_path / "said.csv"
    document = run_json("predict", four, "--model", "last-finished", "--out", out)
    assert document["finishing_times"] == {"starts_known": 2, "releases_taken_as_starts": 0}
    assert [float(line["predicted"]) for line in table_of(out)] == [3600, 3600]
    four.write_text("id,submit_s,gpus,duration_s,user\na,0,1,10,ann\nb,10,1,5,ann\n", encoding="utf-8")
    run_json("predict", four, "--model", "last-finished", "--out", out)
    assert [float(line["predicted"]) for line in table_of(out)] == [3600, 10]


@pytest.mark.parametrize(
    ("starts", "said"),
    [
        (("", ""), "no start is known: a job is taken to start at its release"),
        (("9", "10"), "finishes its duration after its start, which is known of all 2 jobs"),
        (("9", ""), "finishes its duration after its start; the start is known of 1 of 2 jobs"),
    ],
)
def test_one_remark_tells_how_finishing_times_were_taken(run, four, starts, said):
    rows = [f"{name},9,{start},1,10,ann" for name, start in zip("ab", starts, strict=True)]
    four.write_text("\n".join(["id,submit_s,start_s,gpus,duration_s,user", *rows, ""]), encoding="utf-8")
    lines = run("predict", four, "--model", "median").stdout.splitlines()
    (remark,) = [line for line in lines if "no start is known" in line or "finishes its duration" in line]
    assert said in remark


def test_text_has_summary_table_and_legend(run, four):
    result = run("predict", four, "--model", "median, ewma:alpha=0.5")
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0] == "four"
    assert "rows read 4 = kept 4 + dropped 0" in lines[1]
    (header,) = [line for line in lines if line.startswith("model ")]
    assert all(name in header for name in ("median |ln ratio|", "within 2x", "coverage", "cold start", "D of 80 %"))
    assert lines[lines.index(header) + 2].startswith("ewma:alpha=0.5 ")
    assert any(line.startswith("D: b / a") for line in lines)


def test_quiet_prints_the_table_only(run, four):
    result = run("predict", four, "--model", "median", "--quiet")
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["model", "median"]


def test_default_models_need_no_forest(run_json, four, monkeypatch):
    monkeypatch.setitem(sys.modules, "frostline.prediction.forest_model", None)
    rows = run_json("predict", four)["results"]
    assert [row["model"] for row in rows] == ["combined", "last-finished", "median", "global-median"]


def test_forest_is_the_same_for_the_same_seed(run_json, run, tmp_path):
    trace = tmp_path / "trace.csv.gz"
    assert run("generate", "--recurring", "--jobs", 200, "--pool", 64, "--out", trace).exit_code == 0
    words = ("predict", trace, "--model", "forest:n_estimators=4,median")
    first = run_json(*words, "--seed", 1, "--out", tmp_path / "1.csv")
    again = run_json(*words, "--seed", 1, "--out", tmp_path / "2.csv.gz")
    other = run_json(*words, "--seed", 2)
    assert timeless(first) == timeless(again)
    assert table_of(tmp_path / "1.csv") == table_of(tmp_path / "2.csv.gz")
    assert timeless(first)[0] != timeless(other)[0]
    assert timeless(first)[1] == timeless(other)[1]
    assert first["results"][0]["sources"]["forest"] > 50


def test_seed_goes_to_models_that_draw(monkeypatch):
    class Drawing:
        name = "drawing"

        def __init__(self, seed: int = 0) -> None:
            self.seed = seed

    monkeypatch.setattr(registry, "_factories", lambda: {"drawing": lambda: Drawing})
    assert [model.seed for model in parse_models("drawing,drawing:seed=3", 7).values()] == [7, 3]


def test_models_with_blanks_between():
    assert list(parse_models(" median , survival ")) == ["median", "survival"]
    with pytest.raises(InvalidValueError, match="twice"):
        parse_models("median, median")


def test_first_jobs_time_unit_and_repair(run_json, four):
    document = run_json("predict", four, "--model", "median", "--jobs", 2)
    assert document["results"][0]["jobs"] == document["trace"]["jobs"] == 2
    four.write_text("id,submit,start,gpus,duration\na,0,0,1,60\nb,9,9,-1,60\nc,60,60,1,60\nd,99,99,1,1\n", "utf-8")
    document = run_json("predict", four, "--model", "median", "--repair", "--time-unit", "min", "--jobs", 2)
    assert document["finishing_times"] == {"starts_known": 2, "releases_taken_as_starts": 0}
    assert document["results"][0]["median_abs_log_ratio"] == 0.0  # an hour, as is believed by default
    assert document["trace"]["mode"] == "repair"


def test_shipped_instance_by_name(run_json):
    document = run_json("predict", "q06", "--model", "global-median")
    assert document["results"][0]["jobs"] == 3
    assert document["finishing_times"]["starts_known"] == 0


def test_iterations_of_an_instance(run_json, run, tmp_path):
    instance = tmp_path / "instance.json.gz"
    words = ("generate", "--recurring", "--work", "profiled", "--jobs", 100, "--pool", 64, "--out", instance)
    assert run(*words).exit_code == 0
    document = run_json("predict", instance, "--model", "median", "--out", tmp_path / "said.csv")
    assert document["unit"] == "iterations"
    assert document["results"][0]["learned"] > 10
    said = table_of(tmp_path / "said.csv")
    assert {line["unit"] for line in said} == {"iterations"}
    assert all(float(line["actual"]) % 1 == 0 for line in said)


def test_duration_of_training_is_that_of_the_cluster(run_json, tmp_path):
    from frostline.problem import Cluster, Instance, Job, Training, TrainingPlan, shipped_network
    from frostline.problem.files import save
    from frostline.timing.duration import fastest_us

    plan = TrainingPlan.balanced(shipped_network("resnet50"), gpus=4, stages=1)
    first = Job(id="a", release_s=0, work=Training(plan=plan, iterations=50), gpus=4, user="ann")
    cluster = Cluster.uniform(2)
    ends_s = fastest_us(first, cluster) / 1e6
    later = [first.replace(id=i, release_s=t) for i, t in (("b", ends_s - 0.001), ("c", ends_s))]
    save(Instance(cluster=cluster, jobs=[first, *later]), tmp_path / "instance.json")
    run_json("predict", tmp_path / "instance.json", "--model", "median", "--out", tmp_path / "said.csv")
    assert [float(line["predicted"]) for line in table_of(tmp_path / "said.csv")] == [1000, 1000, 50]


def test_instance_without_jobs(run_json, run, tmp_path):
    none = tmp_path / "none.json"
    cluster = '{"servers": [{"id": "x", "gpus": 8}]}'
    none.write_text(f'{{"format": "frostline/instance", "version": 1, "cluster": {cluster}, "jobs": []}}', "utf-8")
    (row,) = run_json("predict", none, "--model", "median")["results"]
    assert (row["jobs"], row["median_abs_log_ratio"], row["seconds_per_prediction"], row["sources"]) == (
        0,
        None,
        None,
        {},
    )
    assert run("predict", none, "--model", "median").stdout.count(" -") == 9


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("median,last-finishd", "did you mean 'last-finished'"),
        ("median,median", "named twice"),
        ("median,", "unknown model ''"),
        ("ewma:alpha", "must read name=value"),
        ("ewma:alfa=1", "did you mean 'alpha'"),
        ("ewma:alpha=2", "alpha=2"),
    ],
)
def test_bad_models_fail_before_anything_is_read(refused, monkeypatch, four, model, said):
    monkeypatch.setattr("frostline.cli.predict.read_workload", pytest.fail)
    assert said in refused("predict", four, "--model", model)


@pytest.mark.parametrize(
    ("option", "name", "said"),
    [("--plot", "p.bmp", "must end in .png, .pdf or .svg"), ("--out", "said.txt", "must end in .csv or .csv.gz")],
)
def test_bad_endings_fail_before_anything_is_read(refused, monkeypatch, four, tmp_path, option, name, said):
    monkeypatch.setattr("frostline.cli.predict.read_workload", pytest.fail)
    assert said in refused("predict", four, option, tmp_path / name)


def test_plot_without_matplotlib_names_the_extra(refused, four, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "pip install 'frostline[plot]'" in refused("predict", four, "--plot", tmp_path / "p.png")


def test_plot_is_written(run, four, tmp_path):
    pytest.importorskip("matplotlib")
    result = run("predict", four, "--model", "median,survival", "--plot", tmp_path / "p.png")
    assert result.exit_code == 0, result.output
    assert f"written to {tmp_path / 'p.png'}" in result.stdout
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_options_for_traces_do_not_go_with_instances(refused):
    assert "--repair is for traces" in refused("predict", "q06", "--repair")


def test_options_come_from_a_file(run_json, four, tmp_path):
    config = tmp_path / "options.toml"
    config.write_text('[predict]\nmodel = ["median", "ewma"]\njobs = 3\n', encoding="utf-8")
    rows = run_json("predict", four, "--config", config)["results"]
    assert [(row["model"], row["jobs"]) for row in rows] == [("median", 3), ("ewma", 3)]


def test_progress_of_each_model(run, monkeypatch, tmp_path):
    told = []

    @contextmanager
    def progress(self, label, total):
        yield lambda done, jobs: told.append((label, done, jobs, total))

    monkeypatch.setattr(Output, "progress", progress)
    trace = tmp_path / "trace.csv"
    lines = [f"{i},{i},1,5" for i in range(2500)]
    trace.write_text("\n".join(["id,submit_s,gpus,duration_s", *lines, ""]), encoding="utf-8")
    assert run("predict", trace, "--model", "median,ewma:alpha=0.5").exit_code == 0
    assert told == [(name, n, 2500, 2500) for name in ("median", "ewma:alpha=0.5") for n in (1000, 2000)]


def test_interrupt_exits_with_130(run, monkeypatch, four):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("frostline.cli.predict.replay", interrupt)
    assert run("predict", four).exit_code == 130


def test_the_docs_show_what_is_printed(run, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    docs = (Path(__file__).parents[2] / "docs" / "prediction.md").read_text("utf-8")
    commands, shown = re.search(
        r"```console\n(\$ frostline generate .*?)```\n\n```text\n(.*?)```", docs, re.DOTALL
    ).groups()
    monkeypatch.chdir(tmp_path)
    for command in commands.splitlines():
        result = run(*command.removeprefix("$ frostline ").split())
        assert result.exit_code == 0, result.output
    assert without_time(result.stdout) == without_time(shown)


def without_time(text):
    """The text but for the last column of its table, the time."""
    lines = text.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("model "))
    return [line.rsplit(maxsplit=1)[0].rstrip() if head <= i <= head + 4 else line for i, line in enumerate(lines)]
