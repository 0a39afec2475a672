"""What is written where: terminals, pipes, the error stream."""

from __future__ import annotations

import io
import sys
import warnings

import pytest
from rich.console import Console

from frostline.cli.group import CommandGroup
from frostline.cli.output import Output, json_text
from frostline.errors import FrostlineWarning
from frostline.report.table import Table


class Terminal(io.StringIO):
    """Text stream that says it is a terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True


@pytest.fixture
def table() -> Table:
    """Table that is wide, and narrow when turned."""
    return Table(["policy", *(f"figure {i} s" for i in range(12))], [["fifo", *("1,234,567" for _ in range(12))]])


def drawn(table: Table, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(table.rich(width))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_table_is_turned_where_the_terminal_is_narrow(table):
    assert drawn(table, 200)[0].split()[:3] == ["policy", "figure", "0"]
    lines = drawn(table, 60)
    assert lines[0].split() == ["policy", "fifo"]
    assert len(lines) == 13
    assert all("1,234,567" in line for line in lines[1:])


def test_terminal_gets_colours_and_a_pipe_does_not(monkeypatch, table):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stdout", Terminal())
    Output(command="toy").table(table)
    assert "\x1b[" in sys.stdout.getvalue()
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    Output(command="toy").table(table)
    assert sys.stdout.getvalue() == table.text() + "\n"


def test_progress_is_for_people_at_the_error_stream(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Output(command="toy").progress("fifo", 10) as on_progress:
        on_progress(5, 10)
    assert "fifo" in sys.stderr.getvalue()
    assert sys.stdout.getvalue() == ""
    with Output(command="toy", quiet=True).progress("fifo", 10) as on_progress:
        assert on_progress is None
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Output(command="toy").progress("fifo", 10) as on_progress:
        assert on_progress is None


def test_json_keeps_everything_else_away(capsys, table):
    output = Output(command="toy", as_json=True)
    output.tell("text")
    output.remark("remark")
    output.table(table)
    output.draw("drawing")
    output.document({"x": 1})
    assert capsys.readouterr().out == json_text("toy", {"x": 1}) + "\n"


def test_json_refuses_what_is_not_finite():
    with pytest.raises(ValueError, match="JSON"):
        json_text("toy", {"x": float("nan")})


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (PermissionError(13, "Permission denied", "x.json"), 2, "error: x.json: Permission denied\n"),
        (OSError("odd"), 2, "error: input or output: odd\n"),
        (MemoryError(), 2, "error: this needs more memory than there is\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_commands_may_raise(monkeypatch, capsys, raised, code, said):
    def fail(*_, **__):
        raise raised

    monkeypatch.setattr("typer.core.TyperGroup.main", fail)
    with pytest.raises(SystemExit) as exit_:
        CommandGroup(name="frostline").main([])
    assert exit_.value.code == code
    assert capsys.readouterr().err == said


def test_warnings_take_one_line(monkeypatch, capsys):
    monkeypatch.setattr("typer.core.TyperGroup.main", lambda *_, **__: warnings.warn("odd", FrostlineWarning, 2))
    with pytest.raises(SystemExit) as exit_:
        CommandGroup(name="frostline").main([])
    assert exit_.value.code == 0
    assert capsys.readouterr().err == "warning: odd\n"
