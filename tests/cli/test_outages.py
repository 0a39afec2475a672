"""``frostline simulate --outages``, and what ``frostline check`` says of the schedule."""

from __future__ import annotations

import pytest

from frostline.errors import FileError, TraceError
from frostline.problem import Cluster, Outage, load_instance, load_schedule
from frostline.traces import read_outages

HEADER = "server,start_s,end_s\n"


@pytest.fixture
def outages(tmp_path):
    """Write a file of outages."""

    def written(rows, header=HEADER):
        path = tmp_path / "outages.csv"
        path.write_text(header + rows, encoding="utf-8")
        return path

    return written


def test_results_by_hand(run_json, trace, outages, tmp_path):
    # a (6 GPUs, 100 s) is cut off at 50 and back at 60, b (8 GPUs, 10 s) and c (2 GPUs, 5 s) follow.
    path, out = outages("s0,50,60\n"), tmp_path / "run"
    document = run_json(
        "simulate", trace, "--cluster", "1x8", "--policy", "fifo,asrpt", "--outages", path, "--out", out
    )
    row, guarded = document["results"]
    assert (row["outages"], row["failed_runs"], row["unfinished_jobs"], row["valid"]) == (1, 1, [], True)
    assert row["lost_gpu_hours"] * 3600 == pytest.approx(6 * 50)
    assert row["makespan_s"] == 175
    assert guarded["guarantee"] is None
    instance = load_instance(out / "instance.json.gz")
    schedule = load_schedule(out / "schedule-fifo.json.gz", instance)
    assert schedule.outages == (Outage(server="s0", start_s=50, end_s=60),)
    checked = run_json("check", out / "schedule-fifo.json.gz")
    assert checked["valid"]
    assert checked["proved"][0].endswith("1 outage, which leave the work up to the last checkpoint")


def test_checkpoints_for_all(run_json, trace, outages):
    words = ["simulate", trace, "--cluster", "1x8", "--policy", "fifo", "--outages", outages("s0,50,60\n")]
    row = run_json(*words, "--checkpoint", 20)["results"][0]
    assert row["lost_gpu_hours"] * 3600 == pytest.approx(6 * 10)
    assert row["makespan_s"] == 135


def test_a_certificate_says_nothing_of_jobs_that_never_end(run_json, trace, outages, tmp_path):
    out, bound = tmp_path / "run", tmp_path / "bound.json"
    words = ["simulate", trace, "--cluster", "1x8", "--policy", "easy", "--outages", outages("s0,100,\n"), "--out", out]
    row = run_json(*words, code=1)["results"][0]
    assert (row["jobs"], row["evictions"], row["unfinished_jobs"]) == (2, 0, ["b"])
    instance = out / "instance.json.gz"
    run_json("bound", instance, "--certificate", bound)
    proved = run_json("check", instance, "--certificate", bound, out / "schedule-easy.json.gz")["proved"]
    assert proved[-1] == "the certificate says nothing of schedules that leave jobs unfinished, as this one does"


def test_jobs_that_never_end_are_told_and_fail_the_command(run, run_json, trace, outages):
    words = ["simulate", trace, "--cluster", "1x8", "--policy", "fifo", "--outages", outages("s0,50,\n")]
    row = run_json(*words, code=1)["results"][0]
    assert (row["jobs"], row["unfinished"], row["unfinished_jobs"]) == (0, 3, ["a", "b", "c"])
    assert (row["valid"], row["flow_over_bound"], row["mean_flow_s"]) == (True, None, None)
    text = run(*words).output
    assert "fifo: 1 outage cut off 1 run, 0.08333 GPU-hours lost; 3 jobs wait for servers that never come back" in text
    assert "UNFINISHED 3" in text


def test_without_outages_nothing_is_said_of_them(run_json, trace):
    row = run_json("simulate", trace, "--cluster", "1x8", "--policy", "fifo")["results"][0]
    assert not {"outages", "failed_runs", "lost_gpu_hours", "unfinished_jobs"} & set(row)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("s9,1,2\n", "line 2: server='s9' must be a server of the cluster"),
        ("s0,soon,2\n", "line 2: start_s='soon' must be a finite number"),
        ("s0,1,2\n\ns0,nan,2\n", "line 4: start_s='nan' must be a finite number"),
        ("s0,,2\n", "line 2: start_s='' must be a finite number"),
        ("s0,5,5\n", "line 2: end_s='5' must lie after start_s=5.0"),
        ("s0,1e300,\n", "line 2: start_s='1e300' must be at most 9e+09"),
        ("s0,5,9\ns0,2,6\n", "line 2: start_s=5.0 must not lie before the end of the outage of line 3"),
        ("s0,2,\ns0,5,9\n", "line 3: start_s=5.0 must not lie before the end of the outage of line 2"),
        ("s0,1\n", "line 2: row='s0,1' must have as many fields as the header"),
    ],
)
def test_bad_rows_are_named(refused, trace, outages, rows, message):
    path = outages(rows)
    words = ["simulate", trace, "--cluster", "1x8", "--policy", "fifo", "--outages", path]
    assert refused(*words) == f"error: {path}: {message}"


def test_all_bad_rows_are_named_at_once(outages):
    with pytest.raises(TraceError) as caught:
        read_outages(outages("s7,x,y\ns0,3,1\n"), Cluster.uniform(1))
    assert [fault.partition("=")[0] for fault in caught.value.faults] == [
        "line 2: server",
        "line 2: start_s",
        "line 2: end_s",
        "line 3: end_s",
    ]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("server,start\n", "has the columns server, start but must have server, start_s, end_s"),
        ("server,start_s,end_s,end_s\n", "but must have"),
        ("", "is empty"),
    ],
)
def test_bad_headers_are_named(outages, header, message):
    with pytest.raises(FileError, match=message):
        read_outages(outages("", header), Cluster.uniform(1))


def test_columns_may_come_in_any_order(outages):
    path = outages("9,s1,5\n,s0,5\n", "end_s, server, start_s\n")
    assert read_outages(path, Cluster.uniform(2)) == (
        Outage(server="s0", start_s=5),
        Outage(server="s1", start_s=5, end_s=9),
    )


@pytest.mark.parametrize(("value", "message"), [("0", "checkpoint=0.0 must be above 0"), ("nan", "must be finite")])
def test_bad_checkpoints_are_named(refused, trace, value, message):
    assert message in refused("simulate", trace, "--cluster", "1x8", "--policy", "fifo", "--checkpoint", value)


def test_a_missing_file_is_named(refused, trace):
    words = ["simulate", trace, "--cluster", "1x8", "--policy", "fifo", "--outages", "none.csv"]
    assert refused(*words).startswith("error: none.csv: ")
