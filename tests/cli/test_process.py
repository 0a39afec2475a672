"""The command line as processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

POLICIES = "asrpt-guard,asrpt-budget,sjf,easy"


def frostline(*words, hash_seed="0", **options):
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "frostline.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **options)


def test_same_bytes_in_every_process(tmp_path):
    trace = tmp_path / "trace.csv"
    assert frostline("generate", "--jobs", 60, "--cluster", "4x8", "--seed", 3, "--out", trace).returncode == 0
    for seed in ("1", "2"):
        out = tmp_path / seed
        words = ("simulate", trace, "--cluster", "4x8", "--policy", POLICIES, "--out", out, "--json")
        result = frostline(*words, hash_seed=seed)
        assert result.returncode == 0, result.stderr
        assert len(json.loads(result.stdout)["results"]) == 4
    first, second = tmp_path / "1", tmp_path / "2"
    names = sorted(path.name for path in first.glob("*.json.gz"))
    assert len(names) == 5
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_one_error_line_and_no_traceback():
    result = frostline("simulate", "none.csv", "--cluster", "1x8", "--policy", "fifo")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == "error: none.csv: no such file or folder\n"


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from frostline.cli import main\n"
        "sys.argv = ['frostline', '--help']\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0\n"
        "heavy = {'rich', 'pandas', 'numba', 'ortools', 'sklearn', 'scipy', 'cattrs'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Commands:" in result.stdout


def test_names_that_a_narrow_encoding_cannot_show(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("id,submit_s,gpus,duration_s\njob-µ,0,99,5\nb,0,1,5\n", encoding="utf-8")
    environment = os.environ | {"PYTHONIOENCODING": "cp1252"}
    command = [
        sys.executable,
        "-m",
        "frostline.cli",
        "simulate",
        str(trace),
        "--cluster",
        "1x8",
        "--policy",
        "asrpt-guard",
    ]
    result = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert result.returncode == 0, result.stderr
    text = result.stdout.decode("cp1252")
    assert "job 'job-µ'" in text
    assert r"\u0393 = 20 s" in text
