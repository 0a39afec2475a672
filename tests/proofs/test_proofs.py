"""The Coq proofs compile from a clean tree and rest on nothing; what their README cites is there; the gate can fail.

Tests marked ``proofs`` need ``coqc``. Where it is absent they are skipped, unless CI is set: there they fail.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROOFS = ROOT / "proofs"
TABLE = r"\[`([a-z_]+)`\]\((?:proofs/)?([A-Za-z]+\.v)\)"

Made = subprocess.CompletedProcess[str]


@pytest.fixture
def spoiled(built: tuple[Path, Made], tmp_path: Path) -> Path:
    """A compiled copy to be spoiled."""
    shutil.copy(built[0].parent / "README.md", tmp_path)
    return Path(shutil.copytree(built[0], tmp_path / "proofs"))


@pytest.mark.proofs
def test_every_theorem_is_proved_from_nothing(built: tuple[Path, Made]) -> None:
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
        (
            "../README.md",
            "[`no_such_theorem`](proofs/Flow.v)\n",
            "cites no_such_theorem, which Theorems.v does not list",
        ),
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
def test_the_gate_sees_an_assumption_that_only_coq_sees(spoiled: Path, make: Callable[..., Made]) -> None:
    (spoiled / "Cheat.v").write_text("Hypothesis given : 0 = 1.\nTheorem cheat : 0 = 1.\nProof. exact given. Qed.\n")
    text = "From Frostline Require Import Cheat.\nPrint Assumptions cheat. (* nonsense *)\n"
    (spoiled / "Theorems.v").write_text(text)
    result = make(spoiled)
    assert result.returncode != 0
    assert "a theorem rests on an axiom" in result.stderr
    assert "given : 0 = 1" in result.stderr


JOBS = "3 0 1 1 2 1 0 0 1 1 2 2 0 0 1 1 1 3 0"
"""Two jobs of 2 GPUs for 1 and 2 slots, and one of 1 GPU for 3."""

TREE = "split 1 2 leaf gpu 12 4 0 1 3 4 18 12 6 leaf gpu 12 2 0 1 6"
POINTWISE = "error: pointwise is for jobs without options, weights and penalties"

ONE = "1 5 1 1 1 1 0"
"""One job, released at 5, of 1 GPU for 1 slot."""


@pytest.mark.proofs
def test_the_extracted_checkers_answer(answers: Callable[[Iterable[str]], list[str]]) -> None:
    questions = {
        f"certificate 2 10 {JOBS} {TREE}": "yes",  # the example of OptimalityTree.v
        f"certificate 2 11 {JOBS} {TREE}": "no",  # the optimum is 10
        f"certificate 2 10 {JOBS} {TREE.replace('split 1', 'split 0')}": "no",
        f"certificate 2 10 {JOBS} {TREE.replace('gpu 12', 'gpu 0', 1)}": "no",  # prices over 0
        f"certificate 2 10 {JOBS} pointwise": "no",
        f"certificate 2 8 {JOBS} pointwise": "yes",
        # Two jobs of 3 of 4 GPUs at price 1 for the first slot pay 2, but only one of them can pay at a time.
        "certificate 4 3 2 0 1 1 3 1 0 0 1 1 3 1 0 leaf width 1 2 0 1 1": "yes",
        "certificate 4 3 2 0 1 1 3 1 0 0 1 1 3 1 0 leaf option 1 2 0 1 1 1": "yes",
        "certificate 4 3 2 0 1 1 3 1 0 0 1 1 3 1 0 leaf gpu 3 2 0 1 1": "yes",
        "certificate 4 4 2 0 1 1 3 1 0 0 1 1 3 1 0 leaf width 1 2 0 1 1": "no",
        # Weight 2 and a choice: 1 GPU for 9 slots, or 4 GPUs for 5 and a penalty of 1.
        "certificate 4 11 1 0 2 2 1 9 0 4 5 1 leaf gpu 1 2 0 1 0": "yes",
        "certificate 4 12 1 0 2 2 1 9 0 4 5 1 leaf gpu 1 2 0 1 0": "no",
        f"certificate 1 6 {ONE} leaf gpu 1 2 0 1 0": "yes",
        f"certificate 1 7 {ONE} split 0 4 empty leaf gpu 1 2 0 1 0": "no",
        f"certificate 1 7 {ONE} split 0 5 empty leaf gpu 1 2 0 1 0": "no",
        f"certificate 1 7 {ONE} split 0 4 leaf gpu 1 2 0 1 0 leaf gpu 1 2 0 1 0": "no",
        f"certificate 1 6 {ONE} narrow 1 0 6 - gpu 1 2 0 1 0 leaf gpu 1 2 0 1 0": "yes",
        f"certificate 1 7 {ONE} narrow 1 0 6 - gpu 1 2 0 1 0 leaf gpu 1 2 0 1 0": "no",
        f"last 1 6 {ONE} empty": "yes",
        f"last 1 7 {ONE} empty": "no",
        f"last 1 7 {ONE} leaf gpu 1 2 0 1 0": "no",
        "last 1 5 2 0 1 1 1 2 0 0 1 1 1 2 0 leaf gpu 9 2 0 4 1": "no",
        "last 2 5 3 0 1 1 2 2 0 0 1 1 2 2 0 0 1 1 1 1 0 leaf gpu 1 2 0 4 9": "yes",
        "schedule 2 4 4 2 0 3 5 1 0 4 5 2 2 0 0 5 1 0 3 1 5 10 2 0 1 1 3": "yes",
        "schedule 2 4 4 2 0 3 5 1 0 4 5 2 2 0 0 5 1 0 3 1 4 9 2 0 2 1 2": "no",
        "schedule 2 4 4 1 0 3 5 1 1 0 0 6 1 0 3": "no",
        "schedule 2 4 4 1 0 3 5 1 1 0 0 5 1 0 4": "no",
        "schedule 2 4 4 1 3 3 5 1 1 0 0 5 1 0 3": "no",
        "schedule 2 4 4 1 0 3 5 1 1 0 0 5 2 0 2 1 1": "no",
        "schedule 2 4 4 1 0 3 5 1 0": "no",
        f"certificate 2 -1 {JOBS} {TREE}": "error: not a natural number: -1",
        f"certificate 2 999999999999999999 {JOBS} {TREE}": "error: overflow",
        "certificate 2 12": "error: line ends early",
        "certificate 1 0 0 leaf gpu 1 2 0 1 0 7": "error: unexpected: 7",
        "certificate 1 0 0 leaf gpu 1 2 1 1 0": "error: breakpoints must ascend",
        "certificate 1 0 0 leaf gpu 1 1 0": "error: less than two breakpoints",
        "certificate 1 0 0 leaf server 1 2 0 1 0": "error: not gpu, width or option: server",
        "certificate 1 0 0 trust": "error: not leaf, split, narrow or empty: trust",
        "certificate 1 0 1 5 1 0 pointwise": "error: a job without options",
        "certificate 1 0 1 5 2 1 1 1 0 pointwise": POINTWISE,
        "last 1 0 1 5 2 1 1 1 0 empty": "error: a last completion is of jobs without weights and penalties",
        "certify": "error: not certificate, last or schedule: certify",
    }
    assert dict(zip(questions, answers(questions), strict=True)) == questions


def test_what_the_table_of_claims_cites_is_there() -> None:
    text = (PROOFS / "README.md").read_text()
    listed = re.findall(r"^Print Assumptions ([a-z_]+)\.", (PROOFS / "Theorems.v").read_text(), re.M)
    of_project = re.findall(TABLE, (ROOT / "README.md").read_text())
    cited = re.findall(TABLE, text) + of_project
    assert len(of_project) >= 10
    assert {theorem for theorem, _ in cited} == set(listed)
    for theorem, file in cited:
        assert re.search(rf"^(Theorem|Lemma|Example) {theorem}\b", (PROOFS / file).read_text(), re.M), theorem
    tests = re.findall(r"`(test_[a-z_]+\.py)::(test_[a-z_]+)`", text)
    assert len(tests) >= 10
    for file, test in tests:
        assert f"def {test}(" in (ROOT / "tests" / "property" / file).read_text(), test
    assert {path.name for path in PROOFS.glob("*.v")} == set(re.findall(r"\(([A-Za-z]+\.v)\)", text))
