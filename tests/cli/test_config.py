"""``--config``, ``--help`` and ``--version``."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from frostline.cli.group import COMMANDS


@pytest.fixture
def config(tmp_path):
    """Write a configuration file."""

    def write(text):
        path = tmp_path / "options.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_options_come_from_the_table_of_the_command(run_json, trace, config):
    path = config('[simulate]\ncluster = "1x8"\npolicy = ["fifo", "easy"]\njobs = 2\n[bound]\npool = 4\n')
    document = run_json("simulate", trace, "--config", path)
    assert [row["policy"] for row in document["results"]] == ["fifo", "easy"]
    assert document["trace"]["jobs"] == 2
    assert document["cluster"]["text"] == "1x8"


def test_the_command_line_wins(run_json, trace, config):
    path = config('[simulate]\ncluster = "1x8"\npolicy = "fifo"\njobs = 2\n')
    document = run_json("simulate", trace, "--policy", "sjf", "--config", path, "--jobs", 1)
    assert [row["policy"] for row in document["results"]] == ["sjf"]
    assert document["trace"]["jobs"] == 1


def test_flags_and_both_spellings(run, run_json, trace, config):
    trace.write_text("id,submit,gpus,duration\na,0,1.5,2\n", encoding="utf-8")
    path = config('[simulate]\npool = 8\npolicy = "fifo"\nrepair = true\ntime_unit = "min"\nquiet = true\n')
    assert run_json("simulate", trace, "--config", path)["results"][0]["mean_flow_s"] == 120
    assert len(run("simulate", trace, "--config", path).stdout.splitlines()) == 2
    path = config('[simulate]\npool = 8\npolicy = "fifo"\nrepair = true\n')
    assert run("simulate", trace, "--config", path, "--strict").exit_code == 2
    path = config('[simulate]\npool = 8\npolicy = "fifo"\nstrict = false\n')
    assert run("simulate", trace, "--config", path).exit_code == 0


def test_a_file_without_a_table_for_the_command(run, trace, config):
    path = config("[bound]\npool = 8\n")
    assert run("simulate", trace, "--pool", 8, "--policy", "fifo", "--config", path).exit_code == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[simulate]\npolcy = 'fifo'\n", "did you mean 'policy'"),
        ("[simulat]\npolicy = 'fifo'\n", "did you mean 'simulate'"),
        ("policy = 'fifo'\n", "'policy'"),
        ("simulate = 3\n", "must be a table"),
        ("[simulate]\nconfig = 'other.toml'\n", "'config'"),
        ("[simulate]\njobs = 2.5\n", "2.5"),
        ("[simulate]\njobs = true\n", "simulate.jobs: True must be"),
        ("[simulate]\nquiet = 'yes'\n", "true or false"),
        ("[simulate]\npolicy = []\n", "must be text"),
        ("[simulate]\npolicy = {a = 1}\n", "must be text"),
        ("[simulate]\ntime_unit = 's'\ntime-unit = 'ms'\n", "set twice"),
        ("[simulate]\nstrict = true\nrepair = true\n", "set twice"),
        ("[simulate\n", "is not TOML"),
    ],
)
def test_bad_configuration(refused, trace, config, text, said):
    message = refused("simulate", trace, "--pool", 8, "--policy", "fifo", "--config", config(text))
    assert said in message


def test_configuration_that_cannot_be_read(refused, trace, tmp_path):
    words = ("simulate", trace, "--pool", 8, "--policy", "fifo", "--config")
    assert "no such file" in refused(*words, tmp_path / "none.toml")
    assert "is a folder" in refused(*words, tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"[simulate]\n# \xff\n")
    assert "is not UTF-8" in refused(*words, tmp_path / "bytes.toml")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples_and_the_common_options(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "Examples:" in result.stdout
    assert f"frostline {command}" in result.stdout
    for option in ("--json", "--quiet", "--config"):
        assert option in result.stdout


def test_help_and_version(run):
    result = run("--help")
    assert result.exit_code == 0
    assert all(command in result.stdout for command in COMMANDS)
    assert run("--version").stdout == f"frostline {version('frostline')}\n"
