"""Certificates of offline results: optimality trees, honest bounds, and every fault that the checker names."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pytest

from frostline.certify import check_certificate
from frostline.errors import InvalidValueError
from frostline.offline import Objective, WorkLimit, certified, solve
from frostline.offline import certificate as certificate_module
from frostline.problem import Cluster, Elastic, Fixed, Instance, Job, Server
from frostline.relaxation.lagrangian import PriceProblem, certificate_of, price_problem, prove_last
from frostline.verify import check_bound

Document = dict[str, Any]


def fixed(name: str, release_s: float, duration_s: float, gpus: int) -> Job:
    return Job(id=name, release_s=release_s, work=Fixed(duration_s=duration_s), gpus=gpus)


def crowd(jobs: int = 7, seed: int = 0) -> Instance:
    rng = np.random.default_rng(seed)
    drawn = [
        fixed(f"J{i}", float(rng.integers(3, 9)), float(rng.integers(1, 7)), int(rng.integers(1, 6)))
        for i in range(jobs)
    ]
    return Instance(cluster=Cluster.pool(5), jobs=drawn)


def signed(document: Document) -> Document:
    content = {name: value for name, value in document.items() if name != "sha256"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return {**content, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def kinds(instance: Instance, document: Document) -> list[str]:
    return [fault.kind.value for fault in check_bound(instance, document).faults]


@pytest.mark.parametrize("goal", [*Objective])
@pytest.mark.parametrize("seed", [0, 2, 10])
def test_optimum_is_certified(goal: Objective, seed: int) -> None:
    instance = crowd(seed=seed)
    result = solve(instance, objective=goal)
    found = certified(result)
    assert (result.status, found.optimal, found.method) == ("optimal", True, "tree")
    assert found.bound_us == result.objective_us == result.bound_us
    report = check_bound(instance, found.document)
    ends_us = result.schedule.completion_us.values()
    assert report.bound_us == (max(ends_us) if goal is Objective.MAKESPAN else sum(ends_us))
    assert kinds(instance, signed({**found.document, "bound": found.document["bound"] + 1})) in (
        ["unproved"],
        ["malformed"],  # a window that is no longer empty has no prices
    )


@pytest.mark.parametrize("goal", ["flow", "makespan"])
def test_any_digit_that_is_changed_is_noticed(goal: str) -> None:
    instance = crowd(5)
    text = json.dumps(certified(solve(instance, objective=goal)).document)
    places = [i for i, letter in enumerate(text) if letter.isdigit()]
    for place in places[:: max(len(places) // 100, 1)]:
        digit = str((int(text[place]) + 1) % 10)
        try:
            document = json.loads(text[:place] + digit + text[place + 1 :])
        except json.JSONDecodeError:  # a number must not begin with 0
            continue
        assert check_bound(instance, document).faults, text[place - 20 : place + 5]


@pytest.mark.parametrize("goal", ["flow", "makespan"])
def test_faults_are_named(goal: str) -> None:
    instance = crowd(5)
    document = certified(solve(instance, objective=goal)).document
    more = instance.replace(jobs=(*instance.jobs, fixed("new", 0, 1, 1)))
    (fault,) = check_bound(more, document).faults
    assert (fault.kind, fault.job, fault.text) == ("other_problem", "new", "job 'new' is left out of it")
    i, leaf = next((i, node) for i, node in enumerate(document["proof"]) if type(node) is dict)
    leaf["prices"][0][0] = -1
    (fault,) = check_bound(instance, signed(document)).faults
    assert (fault.kind, fault.text) == ("negative_price", f"proof[{i}].prices[0][0]=-1 must not be below 0")


def test_makespan_by_hand() -> None:
    # Two jobs of 3 and 4 ticks on the only GPU end at 7: by 6 they would pay 7 for what earns 6.
    problem = PriceProblem.of_rows(1, [(0, [(1, 3, 0)]), (0, [(1, 4, 0)])]).document | {"weight": "last"}
    leaf = {"by": "gpu", "denominator": 1, "times": [0, 6], "prices": [[6]]}
    document = {"format": "frostline/certificate", "version": 1, "problem": problem, "bound": 7, "proof": [leaf]}
    report = check_certificate(signed(document))
    assert (report.valid, report.bound_us) == (True, 7)
    assert report.proved == "no schedule without interruptions completes its last job before 7e-06 s"
    # Completions of 3 and 4 and 6 · (7 − 6) make 13, and two completions by 6 at most 12: 6 is enough, 5 is not.
    cheap = {**leaf, "prices": [[5]]}
    (fault,) = check_certificate(signed({**document, "proof": [cheap]})).faults
    assert (fault.kind, fault.text) == (
        "unproved",
        "the proof does not exclude a last completion at 6 ticks, before 7",
    )
    for wrong in ({"weight_unit": [1, 2]}, {"penalty": [0, 1]}):
        (fault,) = check_certificate(signed({**document, "problem": problem | wrong})).faults
        assert (fault.kind, "must not be 'last'" in fault.text) == ("malformed", True)
    (fault,) = check_certificate(signed({**document, "proof": "pointwise"})).faults
    assert "must not be 'pointwise'" in fault.text
    plain = signed({**document, "problem": problem | {"weight": None}})
    assert [fault.kind for fault in check_certificate(plain).faults] == ["unproved"]


def test_last_completion_of_bad_problems() -> None:
    weighted = PriceProblem.of_rows(1, [(0, [(1, 3, 0)])], weights=[2])
    with pytest.raises(InvalidValueError, match="the last completion counts"):
        prove_last(weighted, 3)
    with pytest.raises(InvalidValueError, match="jobs=0"):
        prove_last(PriceProblem.of_rows(1, []), 3)


def test_last_completion_of_many_jobs_is_proved_by_what_they_need() -> None:
    instance = Instance(cluster=Cluster.pool(4), jobs=[fixed(f"J{i}", i, 4, 1) for i in range(2000)])
    tree = prove_last(price_problem(instance), 2004, most_nodes=1)
    assert (tree.complete, tree.bound) == (False, 2003)
    assert check_certificate(certificate_of(price_problem(instance), tree)).valid


def test_a_price_that_is_too_high_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frostline.relaxation.lagrangian.last._MOST_PRICE", 0)
    problem = PriceProblem.of_rows(1, [(0, [(1, 3, 0)]), (0, [(1, 4, 0)])])
    assert (prove_last(problem, 7).complete, prove_last(problem, 7).bound) == (False, 4)


def test_what_a_solver_proved_beyond_the_prices_is_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance(
        cluster=Cluster(servers=[Server(id=name, gpus=2) for name in "ab"]),
        jobs=[fixed(name, 0, 4, 1).replace(locality="server", gpus=2 if name == "x" else 1) for name in "xyzw"],
    )
    result = solve(instance, objective="flow")
    found = certified(result)
    assert check_bound(instance, found.document).valid
    assert found.bound_us <= result.bound_us
    monkeypatch.setattr(certificate_module, "_MOST_NODES", 0)
    loose = certified(solve(crowd(seed=10), objective="flow"))
    assert (loose.optimal, loose.method) == (False, "prices")
    assert check_bound(crowd(seed=10), loose.document).valid
    asked: list[int] = []
    stopped = certified(solve(crowd(seed=10), objective="makespan"), callback=lambda nodes: not asked.append(nodes))
    assert (stopped.optimal, asked) == (False, [0])


def test_servers_are_left_out_and_that_is_honest() -> None:
    """Two servers of three GPUs run two jobs of two GPUs at once, a pool of six runs three."""
    cluster = Cluster(servers=[Server(id=name, gpus=3) for name in "ab"])
    instance = Instance(cluster=cluster, jobs=[fixed(n, 0, 4, 2).replace(locality="server") for n in "xyz"])
    for goal, objective, bound in (("flow", 16, 12), ("makespan", 8, 4)):
        result = solve(instance, objective=goal)
        found = certified(result)
        assert (result.status, result.objective, found.optimal) == ("optimal", objective, False)
        assert found.bound_us == bound * 10**6
        assert check_bound(instance, found.document).valid


def test_large_instances_have_a_bound_without_a_tree() -> None:
    rng = np.random.default_rng(1)
    jobs = [fixed(f"J{i}", float(i), float(rng.integers(5, 60)), int(rng.integers(1, 5))) for i in range(70)]
    result = solve(Instance(cluster=Cluster.pool(8), jobs=jobs), objective="completion", stop=WorkLimit(0.1))
    found = certified(result)
    assert (found.nodes, found.optimal) == (0, False)
    assert check_bound(result.instance, found.document).bound_us == found.bound_us <= result.objective_us


def test_widths_that_were_free() -> None:
    table = {"one_server": {1: (4.0,), 2: (2.5,)}}
    work = Elastic(iterations=10, widths=[1, 2], seconds_per_iteration=table, compute_shares=[0])
    instance = Instance(cluster=Cluster.pool(3), jobs=[Job(id=i, release_s=0, gpus=1, work=work) for i in "ab"])
    result = solve(instance, objective="flow", widths=True)
    found = certified(result, widths=True)
    assert (result.objective, found.optimal) == (65.0, True)
    assert found.document["problem"]["choices"] == "elastic"
    assert check_bound(instance, found.document).valid  # of any widths asked for
    assert check_bound(result.instance, found.document).valid
    monkeyed = certified(solve(instance, objective="makespan", widths=True), widths=True)
    assert check_bound(instance, monkeyed.document).valid


def test_nothing_to_certify() -> None:
    nothing = Instance(cluster=Cluster.pool(3), jobs=())
    with pytest.raises(InvalidValueError, match="jobs=0 must be at least one"):
        certified(solve(nothing))
    with pytest.raises(InvalidValueError, match="schedule=None must have been found"):
        certified(solve(nothing.replace(jobs=[fixed("a", 0, 5, 1)]), deadlines_s={"a": 4}))
