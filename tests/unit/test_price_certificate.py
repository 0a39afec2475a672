"""Certificates of bounds: what the checker accepts, and every fault it names."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frostline import certify
from frostline.certify import BoundFaultKind, check_certificate
from frostline.problem import Cluster, Elastic, Fixed, Instance, Job
from frostline.relaxation import bound_certificate, lower_bound
from frostline.relaxation.lagrangian import PriceProblem, best_prices, certificate_of, price_problem, prove
from frostline.verify import check_bound, stated_problem

Document = dict[str, Any]

INSTANCE = Instance(
    cluster=Cluster.pool(4),
    jobs=[
        Job(id=i, release_s=r, gpus=g, work=Fixed(duration_s=p))
        for i, r, g, p in [("a", 0, 3, 2), ("b", 0, 2, 3), ("c", 1, 2, 1), ("d", 1, 4, 2), ("e", 2, 1, 4)]
    ],
)


def signed(document: Document) -> Document:
    """The document with the digest that belongs to what it says now."""
    content = {name: value for name, value in document.items() if name != "sha256"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return {**content, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def kinds(document: object, instance: Instance | None = None) -> list[str]:
    report = check_certificate(document) if instance is None else check_bound(instance, document)  # type: ignore[arg-type]
    assert report.valid == (not report.faults)
    assert report.valid == bool(report.proved) == (report.bound_us is not None)
    return [fault.kind.value for fault in report.faults]


@pytest.fixture
def by_prices() -> Document:
    return bound_certificate(INSTANCE, lower_bound(INSTANCE, "lagrangian"))


@pytest.fixture(scope="module")
def proof() -> Document:
    problem = price_problem(INSTANCE)
    best = next(total for total in range(15, 60) if not prove(problem, total + 1, most_nodes=200).complete)
    tree = prove(problem, best)
    assert tree.complete
    return certificate_of(problem, tree)


@pytest.fixture
def tree(proof: Document) -> Document:
    return copy.deepcopy(proof)


def test_prices_by_hand() -> None:
    # One GPU at 3/2 for two ticks and 1/2 for three: jobs of 2 and 3 cost 5 and 13/2, the GPU earns 9/2.
    problem = PriceProblem.of_rows(1, [(0, [(1, 2, 0)]), (0, [(1, 3, 0)])]).document
    leaf = {"by": "gpu", "denominator": 2, "times": [0, 2, 5], "prices": [[3, 1]]}
    document = {"format": "frostline/certificate", "version": 1, "problem": problem, "bound": 7, "proof": [leaf]}
    report = check_certificate(signed(document))
    assert (report.valid, report.bound_us) == (True, 7)
    assert kinds(signed({**document, "bound": 6})) == []
    assert kinds(signed({**document, "bound": 8})) == ["unproved"]


def test_knapsack_by_hand() -> None:
    # Two jobs of 3 of 4 GPUs at price 1 for the first tick: they pay 2, but only one of them can pay at a time.
    problem = PriceProblem.of_rows(4, [(0, [(3, 1, 0)]), (0, [(3, 1, 0)])]).document
    for leaf in (
        {"by": "width", "denominator": 1, "times": [0, 1], "prices": [[1]]},
        {"by": "option", "denominator": 1, "times": [0, 1], "prices": [[1], [1]]},
        {"by": "gpu", "denominator": 3, "times": [0, 1], "prices": [[1]]},
    ):
        document = {"format": "frostline/certificate", "version": 1, "problem": problem, "bound": 3, "proof": [leaf]}
        assert check_certificate(signed(document)).bound_us == 3
        assert kinds(signed({**document, "bound": 4})) == ["unproved"]


def test_every_kind_of_certificate_is_accepted(by_prices: Document, tree: Document) -> None:
    pointwise = bound_certificate(INSTANCE, lower_bound(INSTANCE))
    one_shot = bound_certificate(INSTANCE, lower_bound(INSTANCE, "one-shot"))
    values = [check_bound(INSTANCE, document).bound_us for document in (pointwise, one_shot, by_prices, tree)]
    assert None not in values
    assert max(values) == values[-1]
    assert "below" in check_bound(INSTANCE, tree).proved


def test_optimality_tree_refuses_one_more(tree: Document) -> None:
    assert kinds(tree, INSTANCE) == []
    assert kinds(signed({**tree, "bound": tree["bound"] + 1}), INSTANCE) == ["unproved"]


@pytest.mark.parametrize("which", ["by_prices", "tree"])
def test_any_digit_that_is_changed_is_noticed(request: pytest.FixtureRequest, which: str) -> None:
    text = json.dumps(request.getfixturevalue(which))
    places = [i for i, letter in enumerate(text) if letter.isdigit()]
    for place in places[:: max(len(places) // 150, 1)]:
        digit = str((int(text[place]) + 1) % 10)
        try:
            document = json.loads(text[:place] + digit + text[place + 1 :])
        except json.JSONDecodeError:  # a number must not begin with 0
            continue
        faults = check_bound(INSTANCE, document).faults
        assert faults, text[place - 20 : place + 5]
        assert all(fault.text for fault in faults)


@pytest.mark.parametrize("which", ["by_prices", "tree"])
@pytest.mark.parametrize("job", range(5))
def test_a_job_that_is_dropped_is_named(request: pytest.FixtureRequest, which: str, job: int) -> None:
    document = request.getfixturevalue(which)
    for name in ("ids", "release", "width", "duration"):
        del document["problem"][name][job]
    assert "damaged" in kinds(document) or "malformed" in kinds(document)
    problem = PriceProblem.of_rows(
        4,
        [
            (r, [(g, p, 0)])
            for r, g, p in zip(*(document["problem"][n] for n in ("release", "width", "duration")), strict=True)
        ],
    )
    fresh = certificate_of(problem, best_prices(problem).best)
    fresh["problem"] = {**document["problem"]}
    report = check_bound(INSTANCE, signed(fresh))
    name = "abcde"[job]
    assert [(fault.kind.value, fault.job) for fault in report.faults] == [("other_problem", name)]
    assert report.faults[0].text == f"job {name!r} is left out of it"


def test_negative_price(by_prices: Document, tree: Document) -> None:
    for document in (by_prices, tree):
        i, leaf = next((i, node) for i, node in enumerate(document["proof"]) if type(node) is dict)
        leaf["prices"][0][1] = -1
        report = check_bound(INSTANCE, signed(document))
        (fault,) = report.faults
        assert fault.kind is BoundFaultKind.NEGATIVE_PRICE
        assert fault.text == f"proof[{i}].prices[0][1]=-1 must not be below 0"


@pytest.mark.parametrize(
    ("column", "text"),
    [("release", "job 'b' has release 1 in it, not 0"), ("duration", "job 'b' has duration 4 in it, not 3")],
)
def test_another_job_is_named(by_prices: Document, column: str, text: str) -> None:
    by_prices["problem"][column][1] += 1
    faults = check_bound(INSTANCE, signed(by_prices)).faults
    assert (faults[0].kind.value, faults[0].job, faults[0].text) == ("other_problem", "b", text)


def test_another_cluster_is_told(by_prices: Document) -> None:
    wider = INSTANCE.replace(cluster=Cluster.pool(5))
    assert [fault.text for fault in check_bound(wider, by_prices).faults] == [
        "it has another gpus than the problem given"
    ]


def test_options_from_elsewhere_are_of_no_instance() -> None:
    problem = price_problem(INSTANCE, options={"a": [(1, 4_000_000, 0)]})
    document = certificate_of(problem, best_prices(problem).best)
    assert kinds(document) == []
    assert set(kinds(document, INSTANCE)) == {"other_problem"}


def test_weights_and_elastic_work() -> None:
    table = {"one_server": {1: (4.0, 2.0), 2: (2.5, 1.5)}}
    work = Elastic(iterations=10, widths=[1, 2], seconds_per_iteration=table, compute_shares=[0, 1])
    jobs = [Job(id=i, release_s=0, gpus=1, work=work, weight=w) for i, w in [("a", 1), ("b", 0.25), ("c", 2)]]
    instance = Instance(cluster=Cluster.pool(3), jobs=jobs)
    problem = price_problem(instance, weighted=True, elastic=True)
    document = certificate_of(problem, best_prices(problem).best)
    report = check_bound(instance, document)
    assert report.valid
    assert "total weighted completion time" in report.proved
    # Each alone takes 15 s at least, on 2 GPUs, or 20 s on one: c and a begin.
    assert report.bound_us is not None
    assert 3.25 * 15e6 <= report.bound_us <= 3.25 * 20e6
    heavier = instance.replace(jobs=(jobs[0].replace(weight=0.1), *jobs[1:]))
    assert [fault.job for fault in check_bound(heavier, document).faults] == ["a"]
    rigid = certificate_of(price_problem(instance), best_prices(price_problem(instance)).best)
    assert stated_problem(instance, rigid["problem"]) == rigid["problem"]


def test_penalties_are_part_of_what_is_proved() -> None:
    problem = PriceProblem.of_rows(4, [(0, [(1, 9, 0), (4, 5, 1)])])
    report = check_certificate(certificate_of(problem, best_prices(problem).best))
    assert report.bound_us == 6
    assert "with penalties" in report.proved


BROKEN: dict[str, tuple[Callable[[Document], object], str]] = {
    "no object": (lambda d: None, "certificate must be an object"),
    "format": (lambda d: {**d, "format": "frostline/other"}, "must have format 'frostline/certificate'"),
    "version": (lambda d: {**d, "version": 2}, "version 1"),
    "more": (lambda d: {**d, "more": 1}, "with the fields"),
    "bound": (lambda d: {**d, "bound": 1.5}, "bound=1.5 must be a whole number"),
    "truth": (lambda d: {**d, "bound": True}, "bound=True must be a whole number"),
    "proof": (lambda d: {**d, "proof": "trust me"}, "proof must be 'pointwise' or a list"),
    "no node": (lambda d: {**d, "proof": []}, "proof[0] must be an object"),
    "two roots": (lambda d: {**d, "proof": d["proof"] * 2}, "proof must end with its last leaf"),
    "half a split": (lambda d: {**d, "proof": [[0, 1], *d["proof"]]}, "proof[2] must be an object"),
    "split": (lambda d: {**d, "proof": [[0], *d["proof"]]}, "proof[0] must be a list of 2"),
    "split of no job": (lambda d: {**d, "proof": [[9, 1], *d["proof"]]}, "proof[0][0]=9 must be below"),
    "empty": (lambda d: {**d, "proof": ["empty"]}, "proof[0] must be an object"),
    "not empty": (lambda d: {**d, "proof": [[0, -1], *d["proof"] * 2]}, "proof[1] must be 'empty'"),
    "windows": (lambda d: {**d, "proof": [{**d["proof"][0], "windows": [1]}]}, "windows[0] must be a list of 3"),
    "ids": (lambda d: {**d, "problem": {**d["problem"], "ids": ["a"] * 5}}, "a list of different texts"),
    "columns": (lambda d: {**d, "problem": {**d["problem"], "release": [0]}}, "problem.release must be a list of 5"),
    "wide": (lambda d: {**d, "problem": {**d["problem"], "width": [9, 1, 1, 1, 1]}}, "width[0]=9 must be at most 4"),
    "narrow": (lambda d: {**d, "problem": {**d["problem"], "width": [0, 1, 1, 1, 1]}}, "width[0]=0 must be"),
    "weights": (
        lambda d: {**d, "proof": "pointwise", "problem": {**d["problem"], "weight": [2, 1, 1, 1, 1]}},
        "must not be 'pointwise'",
    ),
    "by": (lambda d: {**d, "proof": [{**d["proof"][0], "by": "job"}]}, "must be gpu, width or option"),
    "by list": (lambda d: {**d, "proof": [{**d["proof"][0], "by": []}]}, "must be gpu, width or option"),
    "denominator": (lambda d: {**d, "proof": [{**d["proof"][0], "denominator": 0}]}, "denominator=0 must be"),
    "times": (lambda d: {**d, "proof": [{**d["proof"][0], "times": [2, 1]}]}, "ascending"),
    "rows": (lambda d: {**d, "proof": [{**d["proof"][0], "prices": []}]}, "must be a list of"),
    "row": (lambda d: {**d, "proof": [{**d["proof"][0], "prices": [[1.5]] * 5}]}, "must be a list of"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_malformed_certificates(by_prices: Document, name: str) -> None:
    change, message = BROKEN[name]
    changed = change(by_prices)
    (fault,) = check_certificate(signed(changed) if type(changed) is dict else changed).faults
    assert fault.kind is BoundFaultKind.MALFORMED
    assert message in fault.text
    if type(changed) is dict:
        assert "malformed" in kinds(signed(changed), INSTANCE) or "other_problem" in kinds(signed(changed), INSTANCE)


def test_no_jobs_have_a_bound_of_nothing() -> None:
    problem = PriceProblem.of_rows(4, [])
    assert check_certificate(certificate_of(problem, "pointwise", 0)).bound_us == 0
    assert kinds(certificate_of(problem, "pointwise", 1)) == ["unproved"]


def test_a_wide_window_gains_nothing(by_prices: Document) -> None:
    """A node that narrows no window proves what its prices prove, and no more."""
    leaf = by_prices["proof"][0]
    proof = [{**leaf, "windows": [[0, 0, None]]}, leaf]
    assert kinds(signed({**by_prices, "proof": proof}), INSTANCE) == []
    assert kinds(signed({**by_prices, "proof": proof, "bound": by_prices["bound"] + 1}), INSTANCE) == ["unproved"]


def test_what_is_not_json_is_damaged_and_malformed(by_prices: Document) -> None:
    assert kinds({**by_prices, "problem": object()}) == ["damaged", "malformed"]
    assert kinds({**by_prices, "proof": [object()]}, INSTANCE) == ["damaged", "malformed"]


def test_a_window_that_is_too_narrow_is_not_believed(by_prices: Document) -> None:
    leaf = by_prices["proof"][0]
    proof = [{**leaf, "windows": [[0, 50, None]]}, leaf]
    assert kinds(signed({**by_prices, "proof": proof, "bound": 60}), INSTANCE) == ["unproved"]


def test_checker_is_small_and_needs_nothing_but_python(by_prices: Document, tmp_path: Path) -> None:
    folder = Path(certify.__file__).parent
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in folder.rglob("*.py")) <= 400
    shutil.copytree(folder, tmp_path / "certify", ignore=shutil.ignore_patterns("__pycache__"))
    code = """
import json, sys
sys.path = [sys.argv[1], *sys.path]
import certify
print(certify.check_certificate(json.load(sys.stdin)).proved)
loaded = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names) - {"__main__"}
print(sorted(name for name in loaded if not name.startswith("_")))
"""
    command = [sys.executable, "-I", "-S", "-c", code, str(tmp_path)]
    done = subprocess.run(command, input=json.dumps(by_prices), capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [check_certificate(by_prices).proved, "['certify']"]
