"""Every page shows what really happens: its examples run in order, its commands exist, its links lead somewhere."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis.strategies import just
from typer.testing import CliRunner

from frostline import problem
from frostline.cli.app import app
from frostline.policies import Policy, registry
from frostline.testing import check_policy

ROOT = Path(__file__).parents[2]
PAGES = {path.name: path for path in sorted((ROOT / "docs").glob("*.md"))}
PAGES |= {name: ROOT / name for name in ("README.md", "instances/README.md")}
OTHERS = ("CHANGELOG.md", "models/README.md", "proofs/README.md", "proofs/theorems.md")
FILES = [*PAGES.values(), *(ROOT / name for name in OTHERS)]

# Commands on files of the reader, that take long, or that other tests run with what they print.
PARSED = {
    "README.md",
    "bounds.md",
    "freezing.md",
    "freezing_rigid.md",
    "instances.md",
    "offline.md",
    "prediction.md",
    "traces.md",
}
NEEDS = {"freezing_live.md": "torch", "plots.md": "matplotlib"}
TABLES = {"freezing_rigid.md": "data/traces/pollux-osdi21"}

BLOCK = re.compile(
    r"^(?:`(?P<file>\w+\.py)`[^\n]*\n\n)?```(?P<kind>python|console|toml)\n(?P<text>.*?)^```\n"
    r"(?:\n```text\n(?P<shown>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
COMMAND = re.compile(r"^\$ frostline (.*)$", re.MULTILINE)
LINK = re.compile(r"\[[^\[\]]+\]\(([^)\s]+)\)")


@cache
def names_of(name: str, table: Path | None) -> dict[str, Any]:
    """What the examples of a page define, run one after the other in a folder of their own, beside a public table."""
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        if table is not None:
            Path(table.name).symlink_to(table.resolve())
        for block in BLOCK.finditer(PAGES[name].read_text("utf-8")):
            if block["kind"] == "console" and name not in PARSED:
                run_commands(block["text"], block["shown"])
            elif block["kind"] == "python" and not block["file"]:
                names = run_python(block["text"], names)
    return names


def run_python(text: str, names: dict[str, Any]) -> dict[str, Any]:
    if not text.startswith(">>>"):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(text, names)
        return names
    example = doctest.DocTestParser().get_doctest(text, names, "the page", None, 0)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(example, out=said.append, clear_globs=False)
    assert not said, "".join(said)
    return example.globs


def run_commands(text: str, shown: str | None) -> None:
    printed = ""
    for command in COMMAND.findall(text):
        result = CliRunner().invoke(app, shlex.split(command))
        assert result.exit_code == 0, f"{command}\n{result.output}"
        printed = result.stdout
    assert shown is None or printed == shown


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package of the page on policies, as if it were installed."""
    module, project, *_ = BLOCK.finditer(PAGES["write_a_policy.md"].read_text("utf-8"))
    (tmp_path / module["file"]).write_text(module["text"], encoding="utf-8")
    about = tomllib.loads(project["text"])["project"]
    (info := tmp_path / f"{about['name']}-{about['version']}.dist-info").mkdir()
    points = [f"{name} = {where}" for name, where in about["entry-points"]["frostline.policies"].items()]
    (info / "entry_points.txt").write_text("\n".join(["[frostline.policies]", *points]), encoding="utf-8")
    (info / "METADATA").write_text(f"Name: {about['name']}\nVersion: {about['version']}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    registry._factories.cache_clear()
    yield
    registry._factories.cache_clear()
    sys.modules.pop(module["file"].removesuffix(".py"), None)


@pytest.mark.parametrize("name", PAGES)
def test_examples_run(name: str, request: pytest.FixtureRequest) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    if name == "write_a_policy.md":
        request.getfixturevalue("plug_in")
    names_of(name, request.getfixturevalue("shared") / TABLES[name] if name in TABLES else None)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_exist_and_links_lead_somewhere(path: Path) -> None:
    text = path.read_text("utf-8")
    group: Any = typer.main.get_command(app)
    with group.make_context("frostline", ["list"], resilient_parsing=True) as context:
        for command in COMMAND.findall(text):
            name, *words = shlex.split(command)
            group.get_command(context, name).make_context(name, words, parent=context).close()
    links = [link for link in LINK.findall(text) if not link.startswith(("https://", "#"))]
    links = [link for link in links if not link.startswith("reference/")]  # written by Sphinx, which looks at these
    assert [link for link in links if not (path.parent / link.split("#")[0]).exists()] == []


def test_pages_are_found() -> None:
    assert len(PAGES) > 20
    assert sum(len(COMMAND.findall(path.read_text("utf-8"))) for path in FILES) > 50


def test_a_wrong_example_is_seen() -> None:
    with pytest.raises(AssertionError, match="Expected:"):
        run_python(">>> 1 + 1\n3\n", {})
    with pytest.raises(AssertionError, match="no-such"):
        run_commands("$ frostline show model no-such\n", None)


# The page on testing prints a report, whose instances depend on the version of Hypothesis.


def test_the_report_that_is_shown_is_printed() -> None:
    names = names_of("testing.md", None)
    shown = re.search(r"```text\n(.*?)```", PAGES["testing.md"].read_text("utf-8"), re.DOTALL)
    assert shown is not None
    assert without_figures(shown[1]) == without_figures(str(names["first_report"]))
    assert_shown_as_it_is(shown[1], names["ShortestFirst"]())


def without_figures(text: str) -> list[str]:
    """Lines of a report, without what depends on the instances that Hypothesis draws."""
    return [
        re.sub(r"\d+", "N", line) for line in text.strip().splitlines() if "Job(" not in line and "cluster=" not in line
    ]


def assert_shown_as_it_is(text: str, policy: Policy) -> None:
    """On the very instances of a report, the policy breaks the very rules, and is told to in the very words."""
    parts = re.findall(r"^([a-z-]+): .*\n    (.*)\n  on\n((?:    .*\n)+)", text, re.MULTILINE)
    assert [rule for rule, _, _ in parts] == ["legal", "work-conserving"]
    for rule, told, code in parts:
        instance = eval(code.strip(), vars(problem))
        report = check_policy(policy, strategy=just(instance), examples=1)
        outcome = next(outcome for outcome in report.broken if outcome.rule == rule)
        assert (outcome.text, outcome.instance) == (told, instance)
