"""Fixtures for the tests of the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from frostline.cli.app import app

ROWS = """id,submit_s,gpus,duration_s,user
a,0,6,100,ann
b,1,8,10,bob
c,2,2,5,ann
"""


@pytest.fixture
def run() -> Callable[..., Result]:
    """Run a command line in this process."""
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def run_json(run: Callable[..., Result]) -> Callable[..., dict[str, Any]]:
    """Run a command line with ``--json``: the one object on the standard output, whose numbers are all finite."""

    def object_of(*words: object, code: int = 0) -> dict[str, Any]:
        result = run(*words, "--json")
        assert result.exit_code == code, result.output
        document: dict[str, Any] = json.loads(result.stdout, parse_constant=pytest.fail)
        assert document["format"] == f"frostline/{words[0]}"
        assert document["version"] == 1
        return document

    return object_of


@pytest.fixture
def refused(run: Callable[..., Result]) -> Callable[..., str]:
    """Run a command line that must fail for its input: one line on the error stream, nothing else, exit code 2."""

    def message_of(*words: object) -> str:
        result = run(*words)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        lines = result.stderr.splitlines()
        assert len(lines) == 1, result.stderr
        assert lines[0].startswith("error: ")
        assert "Traceback" not in lines[0]
        return lines[0]

    return message_of


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Three jobs: on 8 GPUs a wide one waits behind a long one, and a small one could pass it."""
    path = tmp_path / "trace.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path
