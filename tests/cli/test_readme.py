"""The README shows what really happens."""

from __future__ import annotations

import re
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text("utf-8")


def test_demo_prints_what_the_readme_shows(run, tmp_path, monkeypatch):
    shown = re.search(r"```text\n(.*?)```", README, re.DOTALL)[1]
    command = re.search(r"^demo:.*\n\t\$\(BIN\)/frostline (.*)$", MAKEFILE, re.MULTILINE)[1]
    monkeypatch.chdir(tmp_path)
    result = run(*command.split())
    assert result.exit_code == 0
    assert result.stdout == shown
    assert (tmp_path / "run" / "demo" / "summary.json").is_file()


def test_every_policy_is_listed():
    from frostline.policies import policy_names

    assert all(f"`{name}`" in README for name in policy_names())


def test_the_commands_that_it_shows_run(run, tmp_path, monkeypatch):
    """In order, on a short trace, with an outage of one server."""
    monkeypatch.chdir(tmp_path)
    made = ("generate", "--jobs", 200, "--cluster", "50x8", "--load", 1.2, "--seed", 3, "--out")
    for name in ("trace.csv.gz", "philly.csv.gz"):
        assert run(*made, name).exit_code == 0
    Path("outages.csv").write_text("server,start_s,end_s\ns0,3600,7200\n", encoding="utf-8")
    section = README.partition("## Command line")[2]
    commands = re.findall(r"^\$ frostline (.*)$", section, re.MULTILINE)
    assert len(commands) > 10
    assert [command for command in commands if run(*command.split()).exit_code] == []
