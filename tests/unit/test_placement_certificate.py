"""Certificates of placements: what is accepted, and everything that is refused."""

from __future__ import annotations

import copy
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from frostline.placement import place
from frostline.placement.certificate import placement_problem
from frostline.placement.result import PlacementResult
from frostline.timing import ContentionTime, IterationTime, LinkTime, StageGraph
from frostline.verify.placement import CertificateFaultKind as Kind
from frostline.verify.placement import check_placement_certificate

Document = dict[str, Any]

PATH = StageGraph(
    replicas=[2, 3, 1],
    compute_s=[0.1, 0.2, 0.1],
    gradient_bytes=[4 * 10**8, 0, 0],
    edges={(0, 1): 10**9, (1, 2): 10**8},
)
RINGS = StageGraph(
    replicas=[5, 5, 2],
    compute_s=[0] * 3,
    gradient_bytes=[6 * 10**8, 3 * 10**8, 7 * 10**8],
    edges={(0, 1): 4 * 10**8, (1, 2): 8 * 10**8},
)


def contention(**changes: Any) -> IterationTime:
    return ContentionTime(graph=PATH, **changes)


CASES: dict[str, tuple[IterationTime, list[int], str]] = {
    "base": (contention(), [8, 2], "time"),
    "prices": (contention(), [4, 3, 0], "time"),
    "unequal cards": (contention(nic_bytes_per_s=[25e9, 5e9, 5e9]), [2, 3, 4], "time"),
    "overlap": (contention(overlap=True, nic_bytes_per_s=1e8), [4, 3], "time"),
    "consolidate": (contention(nic_bytes_per_s=[25e9, 5e9, 5e9, 25e9]), [2, 4, 3, 2], "consolidate"),
    "link": (LinkTime(graph=PATH), [4, 3], "time"),
    "sizes": (ContentionTime(graph=PATH.replace(gpus_per_replica=[1, 2, 1])), [4, 3, 4], "time"),
    "tree": (ContentionTime(graph=RINGS), [4, 4, 4], "time"),
}


def solved(case: str) -> PlacementResult:
    timing, free, objective = CASES[case]
    return place(timing, free, method="patterns", objective=objective)


def certificate_of(case: str) -> Document:
    certificate = solved(case).certificate
    assert certificate is not None
    return certificate


def sealed(certificate: Document) -> Document:
    """The same with the digest that belongs to its content, as a forger would write it."""
    content = {key: value for key, value in certificate.items() if key != "sha256"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return {**content, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def kinds(certificate: object, problem: Document | None = None) -> set[Kind]:
    return {fault.kind for fault in check_placement_certificate(certificate, problem).faults}


def leaves(node: Document) -> list[Document]:
    return [node] if "worth" in node else leaves(node["fewer"]) + leaves(node["more"])


@pytest.mark.parametrize("case", CASES)
def test_accepted(case: str) -> None:
    result, certificate = solved(case), certificate_of(case)
    report = check_placement_certificate(json.loads(json.dumps(certificate)), certificate["problem"])
    assert report.valid, report.faults
    assert certificate["iteration_ns"] == certificate["bound_ns"] == result.iteration_ns == result.bound_ns
    assert report.proved.endswith(f"this one takes {result.iteration_ns} ns: it is optimal")
    assert sealed(certificate) == certificate


def test_kinds_of_proof() -> None:
    assert certificate_of("base")["proof"] is None
    assert "worth" in certificate_of("prices")["proof"]["tree"]
    assert len(leaves(certificate_of("tree")["proof"]["tree"])) > 1
    assert certificate_of("consolidate")["problem"]["most_servers"] == 2
    assert solved("consolidate").servers_used == 2


def test_a_bound_below_the_time() -> None:
    certificate = certificate_of("prices")
    certificate["bound_ns"] -= 1
    report = check_placement_certificate(sealed(certificate))
    assert report.valid
    assert "% from optimal" in report.proved


@pytest.mark.parametrize("case", CASES)
def test_any_changed_digit_is_refused(case: str) -> None:
    text = json.dumps(certificate_of(case))
    for match in re.finditer(r"[0-9]", text):
        digit = str((int(match[0]) + 1) % 10)
        try:
            spoiled = json.loads(text[: match.start()] + digit + text[match.end() :])
        except json.JSONDecodeError:  # such as 05
            continue
        assert kinds(spoiled)


def higher_bound(certificate: Document) -> None:
    certificate["bound_ns"] += 1


def faster(certificate: Document) -> None:
    certificate["iteration_ns"] -= 1


def left_out(certificate: Document) -> None:
    certificate["placement"].pop()


def twice(certificate: Document) -> None:
    certificate["placement"][1][0] = certificate["placement"][0][0]


def elsewhere(certificate: Document) -> None:
    certificate["placement"][0][0] = 99


def overfull(certificate: Document) -> None:
    certificate["problem"]["servers"] = [[kind, 1] for kind, _ in certificate["problem"]["servers"]]


def too_many_servers(certificate: Document) -> None:
    certificate["problem"]["most_servers"] = 1


def higher_limit(certificate: Document) -> None:
    certificate["proof"]["limit_ns"] += 1
    certificate["bound_ns"] += 1
    certificate["iteration_ns"] += 1


def worthless(certificate: Document) -> None:
    for leaf in leaves(certificate["proof"]["tree"]):
        leaf["worth"] = [0] * len(leaf["worth"])
        leaf["earned"] = [[kind, room, 0] for kind, room, _ in leaf["earned"]]


def earns_less(certificate: Document) -> None:
    leaves(certificate["proof"]["tree"])[0]["earned"][-1][2] += 1


def no_proof(certificate: Document) -> None:
    certificate["proof"] = None


FORGERIES: list[tuple[Callable[[Document], None], Kind]] = [
    (higher_bound, Kind.UNPROVED),
    (faster, Kind.WRONG_TIME),
    (left_out, Kind.MISPLACED),
    (twice, Kind.MISPLACED),
    (elsewhere, Kind.MISPLACED),
    (overfull, Kind.MISPLACED),
    (too_many_servers, Kind.MISPLACED),
    (higher_limit, Kind.UNPROVED),
    (worthless, Kind.UNPROVED),
    (earns_less, Kind.UNPROVED),
    (no_proof, Kind.UNPROVED),
]


@pytest.mark.parametrize(("forge", "kind"), FORGERIES)
@pytest.mark.parametrize("case", ["prices", "unequal cards", "overlap", "link", "tree"])
def test_forgeries_with_a_right_digest(case: str, forge: Callable[[Document], None], kind: Kind) -> None:
    certificate = certificate_of(case)
    forge(certificate)
    assert kind in kinds(sealed(certificate))


def test_prices_of_branches_keep_their_sign() -> None:
    certificate = certificate_of("tree")
    leaf = next(leaf for leaf in leaves(certificate["proof"]["tree"]) if any(leaf["extra"]))
    leaf["extra"] = [-x for x in leaf["extra"]]
    assert Kind.UNPROVED in kinds(sealed(certificate))
    leaf["extra"] = []
    assert Kind.UNPROVED in kinds(sealed(certificate))


def test_a_branch_left_out() -> None:
    certificate = certificate_of("tree")
    tree = certificate["proof"]["tree"]
    certificate["proof"]["tree"] = tree["fewer"]
    assert Kind.UNPROVED in kinds(sealed(certificate))
    del tree["more"]
    certificate["proof"]["tree"] = tree
    assert kinds(sealed(certificate)) == {Kind.MALFORMED}


def test_another_problem() -> None:
    certificate = certificate_of("prices")
    timing, free, _ = CASES["prices"]
    assert kinds(certificate, placement_problem(timing, free)) == set()
    assert kinds(certificate, placement_problem(timing, [4, 3, 1])) == {Kind.OTHER_PROBLEM}


MALFORMED: list[tuple[list[str | int], object]] = [
    (["version"], 2),
    (["version"], True),
    (["format"], "other"),
    (["bound_ns"], -1),
    (["bound_ns"], 1.0),
    (["iteration_ns"], "1"),
    (["problem"], []),
    (["problem", "replicas"], []),
    (["problem", "replicas", 0], 0),
    (["problem", "gpus_per_replica"], [1]),
    (["problem", "overlap"], 1),
    (["problem", "classes"], None),
    (["problem", "classes", 0, "kind"], "sum"),
    (["problem", "classes", 0, "rings", 0], -1),
    (["problem", "classes", 0, "local", 0], 1),
    (["problem", "classes", 0, "pairs", 0], [0, 0, 5]),
    (["problem", "classes", 0, "pairs", 0], [0, 1, -5]),
    (["problem", "classes", 0, "pairs", 1], [0, 1, 5]),
    (["problem", "classes", 0, "pairs"], 7),
    (["problem", "servers", 0], [1, 4]),
    (["problem", "servers"], []),
    (["problem", "most_servers"], 0),
    (["placement"], {}),
    (["placement", 0], [0]),
    (["placement", 0, 1, 0], -1),
    (["proof"], {}),
    (["proof", "limit_ns"], -1),
    (["proof", "order", 0], 2),
    (["proof", "tree"], None),
    (["proof", "tree", "worth"], [1]),
    (["proof", "tree", "earned", 0], [0, 1]),
    (["proof", "tree", "other"], 0),
]


@pytest.mark.parametrize(("path", "value"), MALFORMED)
def test_malformed(path: list[str | int], value: object) -> None:
    certificate = copy.deepcopy(certificate_of("prices"))
    place_of: Any = certificate
    for key in path[:-1]:
        place_of = place_of[key]
    place_of[path[-1]] = value
    report = check_placement_certificate(sealed(certificate))
    assert [fault.kind for fault in report.faults] == [Kind.MALFORMED]
    assert report.proved == ""
    assert not report.valid


@pytest.mark.parametrize("document", [None, [], "text", 1, {}])
def test_not_a_certificate(document: object) -> None:
    assert kinds(document) == {Kind.MALFORMED}


def test_a_stage_or_depth_out_of_bounds_in_a_tree() -> None:
    certificate = certificate_of("tree")
    certificate["proof"]["tree"]["stage"] = 9
    assert kinds(sealed(certificate)) == {Kind.MALFORMED}
    certificate = certificate_of("prices")
    leaf = certificate["proof"]["tree"]
    for _ in range(450):
        certificate["proof"]["tree"] = {
            "stage": 0,
            "replicas": 1,
            "servers": 0,
            "fewer": leaf,
            "more": certificate["proof"]["tree"],
        }
    assert kinds(sealed(certificate)) == {Kind.MALFORMED}


def test_the_checker_needs_nothing_else() -> None:
    code = "\n".join(
        (
            "import importlib.util, json, sys",
            "import frostline.certify.document as document, frostline.verify.placement as checker, types",
            "paths = document.__file__, checker.__file__",
            "for name in [name for name in sys.modules if name.split('.')[0] in ('frostline', 'numpy', 'networkx')]:",
            "    del sys.modules[name]",
            "for name in ('frostline', 'frostline.certify'):",
            "    sys.modules[name] = types.ModuleType(name)",
            "for name, path in zip(('frostline.certify.document', 'checker'), paths):",
            "    spec = importlib.util.spec_from_file_location(name, path)",
            "    sys.modules[name] = alone = importlib.util.module_from_spec(spec)",
            "    spec.loader.exec_module(alone)",
            "report = alone.check_placement_certificate(json.load(sys.stdin))",
            "assert report.valid, report",
            "assert not {'numpy', 'networkx', 'highspy', 'ortools'} & set(sys.modules)",
        )
    )
    text = json.dumps(certificate_of("tree"))
    subprocess.run([sys.executable, "-c", code], input=text, text=True, check=True)


@pytest.mark.parametrize("nics", [(25e9, 25e9, 1e9), (1e9, 1e9, 25e9)])
def test_servers_of_a_class_that_hold_no_replica_earn_nothing(nics: tuple[float, ...]) -> None:
    graph = StageGraph(replicas=[2, 2], compute_s=[0, 0], edges={(0, 1): 10**9}, gpus_per_replica=[2, 2])
    result = place(ContentionTime(graph=graph, nic_bytes_per_s=nics), [4, 4, 1], method="patterns")
    assert result.certificate is not None
    assert result.certificate["proof"] is not None
    assert check_placement_certificate(result.certificate).valid
