"""The Coq proofs compile from a clean tree and rest on nothing; what their README cites is there; the gate can fail.

Tests marked ``proofs`` need ``coqc``. Where it is absent they are skipped, unless CI is set: there they fail.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROOFS = ROOT / "proofs"
TABLE = r"\[`([a-z_]+)`\]\(([A-Za-z]+\.v)\)"


def make(folder: Path, *targets: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", "-C", str(folder), *targets], capture_output=True, text=True, check=False
    )


def sources(folder: Path, to: Path) -> Path:
    """A copy of the sources alone."""
    kept = {".v", ".md", ".sh", ".ml"}

    def built(at: str, names: Iterable[str]) -> list[str]:
        paths = (Path(at) / name for name in names)
        is_source = (path.is_dir() or path.suffix in kept or path.name == "Makefile" for path in paths)
        return [name for name, keep in zip(names, is_source, strict=True) if not keep or name == "checkers.ml"]

    return Path(shutil.copytree(folder, to, ignore=built))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A clean copy of the proofs after ``make``, and what it printed."""
    if shutil.which("coqc") is None:
        if os.environ.get("CI"):
            pytest.fail("coqc is not installed")
        pytest.skip("coqc is not installed")
    folder = sources(PROOFS, tmp_path_factory.mktemp("coq") / "proofs")
    return folder, make(folder)


@pytest.fixture
def spoiled(built: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path) -> Path:
    """A compiled copy to be spoiled."""
    return Path(shutil.copytree(built[0], tmp_path / "proofs"))


@pytest.mark.proofs
def test_every_theorem_is_proved_from_nothing(built: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, result = built
    assert result.returncode == 0, result.stderr
    listed = re.findall(r"^Print Assumptions ([a-z_]+)\. \(\* .+ \*\)$", (folder / "Theorems.v").read_text(), re.M)
    lines = result.stdout.splitlines()
    assert lines[-1] == f"{len(listed)} theorems, no axioms, nothing admitted"
    assert [line.split()[0] for line in lines[-1 - len(listed) : -1]] == listed
    assert set(re.findall(TABLE, (folder / "README.md").read_text())) <= {tuple(line.split()[:2]) for line in lines}


@pytest.mark.proofs
@pytest.mark.parametrize(
    ("file", "text", "fault"),
    [
        ("Flow.v", "Lemma open : False.\nAdmitted.\n", "a proof is left open"),
        ("Flow.v", "Axiom given : False.\n", "something is assumed"),
        ("README.md", "[`no_such_theorem`](Flow.v)\n", "cites no_such_theorem, which Theorems.v does not list"),
        ("README.md", "[`srpt_finishes`](Flow.v)\n", "cites srpt_finishes in Flow.v, where it is not"),
        ("theorems.log", "Closed under the global context\n", "are listed"),
    ],
)
def test_the_gate_sees_what_is_wrong_in_the_files(spoiled: Path, file: str, text: str, fault: str) -> None:
    with (spoiled / file).open("a") as stream:
        stream.write(text)
    result = subprocess.run(["sh", str(spoiled / "table.sh")], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert fault in result.stderr


@pytest.mark.proofs
def test_the_gate_sees_an_assumption_that_only_coq_sees(spoiled: Path) -> None:
    (spoiled / "Cheat.v").write_text("Hypothesis given : 0 = 1.\nTheorem cheat : 0 = 1.\nProof. exact given. Qed.\n")
    text = "From Frostline Require Import Cheat.\nPrint Assumptions cheat. (* nonsense *)\n"
    (spoiled / "Theorems.v").write_text(text)
    result = make(spoiled)
    assert result.returncode != 0
    assert "a theorem rests on an axiom" in result.stderr
    assert "given : 0 = 1" in result.stderr


TREE = "split 1 2 leaf 12 4 18 12 12 6 leaf 12 1 6"


@pytest.mark.proofs
def test_the_extracted_checkers_answer(built: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = built
    result = make(folder, "extract")
    assert result.returncode == 0, result.stderr
    questions = {
        f"tree 2 10 3 0 2 1 0 2 2 0 1 3 {TREE}": "yes",  # the example of OptimalityTree.v
        f"tree 2 11 3 0 2 1 0 2 2 0 1 3 {TREE}": "no",  # the optimum is 10
        f"tree 2 10 3 0 2 1 0 2 2 0 1 3 {TREE.replace('split 1', 'split 0')}": "no",
        "tree 1 0 1 5 1 1 leaf 0 0": "no",  # prices over 0
        "tree 1 6 1 5 1 1 leaf 1 0": "yes",
        "tree 1 7 1 5 1 1 split 0 4 leaf 1 0 leaf 1 0": "no",
        "tree 1 7 1 5 1 1 split 0 4 leaf 1 0 split 0 5 leaf 1 0 leaf 1 0": "no",
        "tree 1 99 1 5 1 1 split 0 4 leaf 1 0 split 0 4 leaf 1 0 leaf 1 0": "no",
        "price 2 12 4 18 12 12 6 3 0 2 1 0 2 2 0 1 3": str(sum(prices_by_hand()) - 2 * (18 + 12 + 12 + 6)),
        "options 2 12 4 18 12 12 6 3 0 1 2 1 0 0 1 2 2 0 0 1 1 3 0": str(sum(prices_by_hand()) - 96),
        "options 4 1 0 1 2 3 1 9 0 1 5 1 2 3 2": str(2 + min(9 + 0, 5 + 1, 3 + 2)),
        "price 2 12 4 18 12 12 -6 0": "error: not a natural number: -6",
        "price 1 999999999999999999 0 1 9 1 9": "error: overflow",
        "price 2 12": "error: line ends early",
        "price 1 1 0 0 7": "error: unexpected: 7",
        "certify": "error: not price, options or tree: certify",
    }
    program = folder / "extract" / "check_certificates"
    answers = subprocess.run([program], input="\n".join(questions) + "\n", capture_output=True, text=True, check=True)
    assert dict(zip(questions, answers.stdout.splitlines(), strict=True)) == questions


def prices_by_hand() -> list[int]:
    """Least cost of a start in slots 0 to 4, times 12, for jobs of (GPUs, slots) (2, 1), (2, 2) and (1, 3)."""
    price = [18, 12, 12, 6, 0, 0, 0, 0]
    return [
        min(12 * (start + slots) + gpus * sum(price[start : start + slots]) for start in range(5))
        for gpus, slots in [(2, 1), (2, 2), (1, 3)]
    ]


def test_what_the_table_of_claims_cites_is_there() -> None:
    text = (PROOFS / "README.md").read_text()
    cited = re.findall(TABLE, text)
    assert len(cited) > 30
    for theorem, file in cited:
        assert re.search(rf"^(Theorem|Lemma|Example) {theorem}\b", (PROOFS / file).read_text(), re.M), theorem
    tests = re.findall(r"`(test_[a-z_]+\.py)::(test_[a-z_]+)`", text)
    assert len(tests) >= 10
    for file, test in tests:
        assert f"def {test}(" in (ROOT / "tests" / "property" / file).read_text(), test
    assert {path.name for path in PROOFS.glob("*.v")} == set(re.findall(r"\(([A-Za-z]+\.v)\)", text))
