"""Bad input: one clear line, exit code 2, nothing written; in repair mode counted."""

from __future__ import annotations

import gzip

import pytest

HEADER = "id,submit_s,gpus,duration_s\n"
GOOD = "a,0,1,10\n"

# Rows after one good row, what the error must say, and the rule under which repair counts the row.
ROWS = {
    "negative duration": ("b,1,1,-5", "duration_s='-5'", {"negative_duration": 1}, {}),
    "infinite duration": ("b,1,1,inf", "duration_s='inf'", {"not_finite_duration": 1}, {}),
    "no number": ("b,1,1,nan", "duration_s='nan'", None, {}),
    "no gpus": ("b,1,0,5", "gpus='0'", {"cpu_only": 1}, {}),
    "part of a gpu": ("b,1,2.5,5", "gpus='2.5'", {}, {"fractional_gpus": 1}),
    "text in a number": ("b,1,many,5", "gpus='many'", {"bad_gpus": 1}, {}),
    "text in a time": ("b,soon,1,5", "submit_s='soon'", {"not_a_number": 1}, {}),
    "too few cells": ("b,1,1", "line 3", {"field_count": 1}, {}),
}


@pytest.mark.parametrize("name", ROWS)
def test_bad_rows(refused, run_json, tmp_path, name):
    row, said, dropped, repaired = ROWS[name]
    trace, out = tmp_path / "trace.csv", tmp_path / "run"
    trace.write_text(HEADER + GOOD + row + "\n", encoding="utf-8")
    words = ("simulate", trace, "--cluster", "1x8", "--policy", "fifo", "--out", out)
    if said is not None:
        assert said in refused(*words)
        assert not out.exists()
    summary = run_json(*words, "--repair")["trace"]
    assert summary["rows_read"] == 2 == summary["rows_kept"] + sum(summary["dropped"].values())
    assert dropped is None or summary["dropped"] == dropped
    assert summary["repaired"] == repaired


def test_repeated_identifier_names_both_lines(refused, tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text(HEADER + GOOD + "b,1,1,5\na,2,2,6\n", encoding="utf-8")
    message = refused("simulate", trace, "--cluster", "1x8", "--policy", "fifo")
    assert "id='a'" in message
    assert "line 2" in message
    assert "line 4" in message


def test_end_before_start(refused, run_json, tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("id,submit,n_gpu,start,end\na,0,1,10,70\nc,90,1,100,40\n", encoding="utf-8")
    assert "end='40'" in refused("simulate", trace, "--cluster", "1x8", "--policy", "fifo")
    summary = run_json("show", trace, "--repair")["trace"]
    assert summary["dropped"] == {"inverted": 1}
    assert summary["duration_s"]["mean"] == 60


def test_rows_in_any_order(run_json, tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text(HEADER + "late,20,1,5\nearly,0,1,5\nmid,10,1,5\n", encoding="utf-8")
    (row,) = run_json("simulate", trace, "--pool", "1", "--policy", "fifo")["results"]
    assert row["mean_flow_s"] == 5


FILES = {
    "missing column": (b"id,submit_s,gpus\na,0,1\n", "no column 'duration_s'"),
    "empty": (b"", "is empty"),
    "header only": (HEADER.encode(), "holds no jobs"),
    "invalid bytes": (HEADER.encode() + b"a\xff,0,1,10\n", "UTF-8"),
    "truncated gzip": (gzip.compress((HEADER + GOOD * 50).encode())[:40], "gzip"),
    "newer version": (b"# frostline/trace version=99\n" + HEADER.encode() + GOOD.encode(), "newer"),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", ["simulate", "convert", "bound", "show"])
def test_bad_trace_files(refused, tmp_path, name, command):
    data, said = FILES[name]
    trace, out = tmp_path / "trace.csv", tmp_path / "out"
    trace.write_bytes(data)
    words = {
        "simulate": ("simulate", trace, "--cluster", "1x8", "--policy", "fifo", "--out", out),
        "convert": ("convert", trace, tmp_path / "out.csv"),
        "bound": ("bound", trace, "--cluster", "1x8"),
        "show": ("show", trace),
    }[command]
    message = refused(*words)
    assert said in message
    assert "trace.csv" in message
    assert [path.name for path in tmp_path.iterdir()] == ["trace.csv"]


JSON_FILES = {
    "not JSON": ("{", "is not JSON"),
    "empty": ("", "is empty"),
    "newer version": (
        '{"format": "frostline/instance", "version": 2, "cluster": {"servers": []}, "jobs": []}',
        "newer",
    ),
    "unknown field": ('{"format": "frostline/instance", "version": 1, "jbos": []}', "$.jbos"),
    "another kind": ('{"format": "frostline/network", "version": 1}', "expected frostline/instance"),
    "number that is none": ('{"format": "frostline/instance", "version": 1, "jobs": NaN}', "NaN"),
}


@pytest.mark.parametrize("name", JSON_FILES)
def test_bad_instance_files(refused, tmp_path, name):
    text, said = JSON_FILES[name]
    path = tmp_path / "bad.json"
    path.write_text(text, encoding="utf-8")
    message = refused("simulate", path, "--policy", "fifo", "--out", tmp_path / "run")
    assert said in message
    assert "bad.json" in message
    assert not (tmp_path / "run").exists()


def test_no_file_and_a_folder(refused, tmp_path):
    words = ("--cluster", "1x8", "--policy", "fifo")
    assert "no such file" in refused("simulate", tmp_path / "none.csv", *words)
    assert "is a folder" in refused("simulate", tmp_path, *words)
    assert "did you mean 'philly-like-5000'" in refused("simulate", "philly-like-500", *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give --cluster or --pool"),
        (("--cluster", "1x8", "--pool", "8"), "not both"),
        (("--cluster", "0x8"), "servers=0 must be at least 1"),
        (("--cluster", "8x0"), "gpus=0 must be at least 1"),
        (("--cluster", "eight"), "SERVERSxGPUS"),
        (("--cluster", "none.json"), "no such file"),
        (("--cluster", "99999999x8"), "at most"),
        (("--cluster", "10000x10000"), "gpus in all"),
        (("--pool", "99999999"), "at most"),
        (("--pool", "0"), "at least 1"),
        (("--pool", "2.5"), "2.5"),
        (("--pool", "8", "--load", "nan"), "finite"),
        (("--pool", "8", "--load", "-1"), "above 0"),
        (("--pool", "8", "--jobs", "0"), "at least 1"),
        (("--pool", "8", "--format", "phily"), "did you mean 'philly'"),
        (("--pool", "8", "--time-unit", "h"), "time unit"),
        (("--pool", "8", "--locality", "rack"), "locality"),
        (("--pool", "8", "--zone", "Mars/Olympus"), "zone"),
        (("--pool", "8", "--duplicates", "merge"), "duplicates"),
        (("--pool", "8", "--nosuch"), "--nosuch"),
        (("--pool", "8", "--seed", "-1"), "--seed"),
    ],
)
def test_bad_options(refused, trace, words, said):
    assert said in refused("simulate", trace, "--policy", "fifo", *words)


@pytest.mark.parametrize(
    "option", [("--repair",), ("--strict",), ("--format", "philly"), ("--time-unit", "s"), ("--zone", "UTC")]
)
def test_options_for_traces_do_not_go_with_instances(refused, option):
    message = refused("simulate", "q06", "--policy", "fifo", *option)
    assert option[0] in message
    assert "q06" in message


def test_usage_errors_point_to_the_help(refused):
    assert "did you mean 'simulate'" in refused("simulat")
    assert "frostline simulate --help" in refused("simulate")
    assert "frostline --help" in refused()
    assert "--policy" in refused("simulate", "q06")
