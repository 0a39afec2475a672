"""Input at the edges of what is legal, and what the help promises."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import warnings
from importlib.util import find_spec

import pytest

from frostline.cli.group import COMMANDS
from frostline.errors import FrostlineWarning
from frostline.policies import policy_names
from frostline.problem import Cluster, Layer, Network, save, shipped_network

HEADER = "id,submit_s,gpus,duration_s\n"
EVERY = ",".join(policy_names())

EDGES = {
    "one row": "a,0,1,10\n",
    "submitted before time zero": "a,-500,1,10\nb,-3.25,2,5\n",
    "shortest and longest": "a,0,1,1e-9\nb,0,2,1e9\nc,0.000000001,8,1e-9\nd,4.3e9,8,8.9e9\n",
    "equal in everything": "x,5,8,10\ny,5,8,10\nz,5,8,10\n",
    "identifiers of all sorts": '../../etc/x,0,1,9\n作业/µ,0,1,9\nx+,0,1,9\nx-,0,1,9\n[red],0,1,9\n"a\nb",0,1,9\n',
}


@pytest.mark.parametrize("name", EDGES)
def test_every_policy_at_the_edges(run, run_json, tmp_path, name):
    trace, out = tmp_path / "trace.csv", tmp_path / "run"
    trace.write_text(HEADER + EDGES[name], encoding="utf-8")
    document = run_json("simulate", trace, "--cluster", "1x8", "--policy", EVERY, "--out", out)
    for row in document["results"]:
        assert row["valid"]
        assert row["jobs"] == row["submitted"] == document["trace"]["rows_read"]
        assert row["flow_over_bound"] >= 1 - 1e-12
        assert row["guarantee"] is None or row["guarantee"]["holds"]
    assert len(list(out.iterdir())) == len(policy_names()) + 2
    for path in out.glob("schedule-*"):
        assert run("check", path).exit_code == 0


def test_when_all_jobs_are_refused_figures_are_dashes(run, run_json, tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text(HEADER + "a,0,100,10\nb,0,99,5\n", encoding="utf-8")
    words = ("simulate", trace, "--cluster", "1x8", "--policy", EVERY)
    for row in run_json(*words)["results"]:
        assert (row["jobs"], row["refused"], row["mean_flow_s"], row["makespan_s"]) == (0, 2, None, None)
    text = run(*words).stdout
    assert "nan" not in text.casefold()
    assert "lower bound (pointwise): no job can run" in text
    assert "submitted 2 = finished 0 + refused 2" in text


def test_every_policy_on_a_cluster_without_gpus(run_json, tmp_path):
    save(Cluster(servers=()), tmp_path / "none.json")
    document = run_json("simulate", "q06", "--cluster", tmp_path / "none.json", "--policy", EVERY)
    assert {(row["refused"], row["valid"]) for row in document["results"]} == {(3, True)}


def test_more_jobs_than_there_are(run_json):
    (row,) = run_json("simulate", "q06", "--policy", "fifo", "--jobs", 10**30)["results"]
    assert row["submitted"] == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("simulate", "", "--pool", "8", "--policy", "fifo"), "unknown trace file or instance ''"),
        (("simulate", "q06", "--cluster", "", "--policy", "fifo"), "cluster='' must read SERVERSxGPUS"),
        (("show", ""), "unknown file, network or instance ''"),
        (("place", "", "--gpus", "1", "--cluster", "1x1"), "unknown network ''"),
    ],
)
def test_names_that_are_empty(refused, words, said):
    assert said in refused(*words)


def test_a_zone_does_not_go_with_times_that_count_from_an_origin(refused, trace, tmp_path):
    words = ("simulate", trace, "--pool", 8, "--policy", "fifo", "--zone", "Europe/Berlin", "--out", tmp_path / "run")
    assert "no zone goes with it" in refused(*words)
    assert not (tmp_path / "run").exists()


def test_warnings_stay_out_of_the_json(run, run_json, tmp_path):
    layers = [Layer(id=i, params=8, forward_flops=6, output_elements=2, saved_bytes=8, backward_flops=12) for i in "ab"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FrostlineWarning)
        save(Network(name="loose", layers=layers, edges=()), tmp_path / "loose.json")
    words = ("place", tmp_path / "loose.json", "--gpus", 2, "--cluster", "1x2")
    assert run_json(*words)["feasible"] is True
    assert run(*words, "--json").stderr.splitlines() == [
        "warning: network 'loose' has 2 layers and no edge: nothing flows between them"
    ]


@pytest.mark.parametrize("words", [("list",), ("show", "model", "bert_large"), ("bound", "q06", "--json")])
def test_a_reader_that_stops_reading_gets_no_traceback(words):
    command = [sys.executable, "-m", "frostline.cli", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.fixture
def files(monkeypatch, tmp_path, run):
    """Folder with the files that the examples name."""
    monkeypatch.chdir(tmp_path)
    times = ("2017-10-09 07:01:55", "2017-10-09 07:02:55")
    rows = {
        "philly.csv": "timestamp,duration,num_gpus\n" + "".join(f"{time},60,1\n" for time in times),
        "itp.csv": "job_id,submission_time,duration,num_gpu\na,0,60,1\nb,9,60,8\n",
        "trace.csv": "id,submit,gpus,duration\na,0,1,60\nb,9,2.5,60\n",
        "outages.csv": "server,start_s,end_s\ns0,30,90\n",
    }
    for name, text in rows.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    save(shipped_network("gpt2"), "my-network.json")
    save(Cluster.uniform(4), "cluster.json")
    assert run("convert", "itp.csv", "instance.json.gz", "--pool", 8).exit_code == 0
    assert run("simulate", "philly.csv", "--cluster", "128x8", "--policy", "fifo", "--out", "run").exit_code == 0
    (tmp_path / "mine.json").write_bytes(gzip.decompress((tmp_path / "run" / "schedule-fifo.json.gz").read_bytes()))
    words = ("run/instance.json.gz", "--method", "lagrangian", "--certificate", "bound.json")
    assert run("bound", *words).exit_code == 0
    assert run("bound", "q06", "--method", "best", "--certificate", "q06-bound.json").exit_code == 0
    words = ("--gpus", 8, "--cluster", "2x4", "--certificate", "placement-certificate.json")
    assert run("place", "gpt2", *words).exit_code == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_of_the_help_run(files, run, command):
    lines = re.findall(r"^ *frostline (.*)$", run(command, "--help").stdout.split("Examples:")[1], re.MULTILINE)
    assert len(lines) >= 2
    drawn = find_spec("matplotlib") is not None
    for line in (line for line in lines if drawn or not re.search(r"^plot |--plot", line)):
        result = run(*line.split())
        assert result.exit_code == 0, (line, result.output)
        assert result.stdout
