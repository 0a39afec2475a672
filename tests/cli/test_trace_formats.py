"""Commands on traces of other formats than our own."""

from __future__ import annotations

from typing import Any

import pytest

from frostline.traces import TRACE_FORMATS

ATTEMPT = '{"start_time":"2017-10-09 07:02:00","end_time":"2017-10-09 07:03:00","detail":[{"gpus":["gpu0","gpu1"]}]}'
LOG = f"""[{{"jobid":"a","submitted_time":"2017-10-09 07:01:55","attempts":[{ATTEMPT}]}},
{{"jobid":"b","submitted_time":"2017-10-09 07:01:56","attempts":[{ATTEMPT}],"user":"u"}},
{{"jobid":"c","submitted_time":"2017-10-09 07:01:57","attempts":[]}}]"""


@pytest.fixture
def log(tmp_path: Any) -> str:
    path = tmp_path / "cluster_job_log.json"
    path.write_text(LOG, encoding="utf-8")
    return str(path)


def test_a_json_log_is_a_trace(run, run_json, log, tmp_path):
    summary = run_json("show", log, "--repair")["trace"]
    assert (summary["format"], summary["rows_read"], summary["dropped"]) == ("philly-json", 3, {"never_started": 1})
    assert run_json("show", "trace", log, "--repair")["trace"] == summary
    (row,) = run_json("simulate", log, "--repair", "--pool", 2, "--policy", "fifo")["results"]
    assert (row["jobs"], row["makespan_s"]) == (2, 120)
    assert run_json("predict", log, "--repair", "--model", "median")["results"]
    run("convert", log, tmp_path / "out.csv", "--format", "philly-json", "--repair", "--quiet")
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()[2:] == ["a,0,2,60,,,,", "b,1,2,60,u,,,"]


def test_strict_says_where(run, log):
    result = run("show", log)
    assert result.exit_code == 2
    assert "line 3: attempts='0' must have been started (never_started)" in result.output


def test_every_format_is_listed(run_json):
    listed = [form["name"] for form in run_json("list", "formats")["formats"]]
    assert listed[0] == "frostline"
    assert set(listed) == set(TRACE_FORMATS)
