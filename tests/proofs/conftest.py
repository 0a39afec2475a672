"""The proofs, compiled once for all tests: those that need ``coqc`` are skipped without it, unless CI is set."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

PROOFS = Path(__file__).parents[2] / "proofs"

Made = subprocess.CompletedProcess[str]
Built = tuple[Path, Made]
Make = Callable[..., Made]


def _make(folder: Path, *targets: str) -> Made:
    return subprocess.run(
        ["make", "--no-print-directory", "-C", str(folder), *targets], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="session")
def make() -> Make:
    """Runs ``make`` in a folder, for targets."""
    return _make


def _needs(program: str) -> None:
    if shutil.which(program) is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{program} is not installed")


def _sources(folder: Path, to: Path) -> Path:
    """A copy of the sources alone."""
    kept = {".v", ".md", ".sh", ".ml"}

    def built(at: str, names: Iterable[str]) -> list[str]:
        paths = (Path(at) / name for name in names)
        is_source = (path.is_dir() or path.suffix in kept or path.name == "Makefile" for path in paths)
        return [name for name, keep in zip(names, is_source, strict=True) if not keep or name == "checkers.ml"]

    return Path(shutil.copytree(folder, to, ignore=built))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A clean copy of the proofs after ``make``, and what it printed."""
    _needs("coqc")
    folder = _sources(PROOFS, tmp_path_factory.mktemp("coq") / "proofs")
    shutil.copy(PROOFS.parent / "README.md", folder.parent)  # it cites theorems, too
    return folder, _make(folder)


@pytest.fixture(scope="session")
def answers(built: Built) -> Callable[[Iterable[str]], list[str]]:
    """What the extracted checkers answer to questions, each of a line."""
    _needs("ocamlopt")
    folder = built[0]
    result = _make(folder, "extract")
    assert result.returncode == 0, result.stderr
    program = folder / "extract" / "check_certificates"

    def asked(questions: Iterable[str]) -> list[str]:
        lines = "".join(f"{question}\n" for question in questions)
        done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    return asked
