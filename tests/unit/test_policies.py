"""Policies by name, their parameters, and what they decide on small instances."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.policies import Asrpt, AsrptBudget, Policy, make_policy, policy_names
from frostline.problem import Cluster, Fixed, Instance, Job, PlacementClass, Profiled
from frostline.simulation import run, simulate
from frostline.simulation.engine import policy_text


def jobs(*rows: tuple[str, float, int, float], locality: str = "any") -> list[Job]:
    return [Job(id=i, release_s=r, gpus=g, work=Fixed(duration_s=p), locality=locality) for i, r, g, p in rows]


def starts(instance: Instance, policy: str) -> dict[str, float]:
    schedule = run(instance, make_policy(policy))
    return {job: start_us / 1e6 for job, start_us in sorted(schedule.start_us.items())}


SIX = Instance(cluster=Cluster.uniform(1), jobs=jobs(("J1", 0, 6, 100), ("J2", 1, 8, 10), ("J3", 2, 2, 5)))
LONG = Instance(cluster=Cluster.uniform(1), jobs=jobs(("J1", 0, 6, 100), ("J2", 1, 8, 10), ("J3", 2, 2, 200)))


@pytest.mark.parametrize(
    ("instance", "policy", "expected"),
    [
        (SIX, "fifo", [0, 100, 110]),
        (SIX, "easy", [0, 100, 2]),
        (SIX, "fifo:discipline=backfill", [0, 100, 2]),
        (LONG, "easy", [0, 100, 110]),
        (LONG, "fifo:discipline=fit-anything", [0, 202, 2]),
    ],
)
def test_disciplines_on_the_gang_of_six(instance: Instance, policy: str, expected: list[float]) -> None:
    assert list(starts(instance, policy).values()) == expected


def test_sjf_orders_by_duration_and_smallest_area_by_gpu_time() -> None:
    cluster = Cluster.pool(4)
    block = ("block", 0, 4, 10)
    instance = Instance(cluster=cluster, jobs=jobs(block, ("wide", 1, 4, 5), ("thin", 1, 1, 12)))
    assert starts(instance, "sjf") == {"block": 0, "thin": 15, "wide": 10}
    assert starts(instance, "smallest-area") == {"block": 0, "thin": 10, "wide": 22}
    assert starts(instance, "ljf") == {"block": 0, "thin": 10, "wide": 22}


def test_sjf_overtakes_unless_told_not_to() -> None:
    instance = Instance(cluster=Cluster.pool(4), jobs=jobs(("a", 0, 2, 10), ("b", 1, 4, 1), ("c", 1, 2, 50)))
    assert starts(instance, "sjf")["c"] == 1
    assert starts(instance, "sjf:discipline=strict")["c"] == 11


def test_reservation_lends_spare_gpus() -> None:
    # b needs 3 at time 10, when all 4 are free: one GPU is spare and may be held beyond.
    instance = Instance(cluster=Cluster.pool(4), jobs=jobs(("a", 0, 2, 10), ("b", 1, 3, 10), ("c", 2, 1, 100)))
    assert starts(instance, "easy") == {"a": 0, "b": 10, "c": 2}


def test_reservation_counts_servers_not_totals() -> None:
    # k needs a whole server. At 10 one is free; a long job must not sit on it, but may on the other.
    rows = jobs(("a", 0, 7, 10), ("b", 0, 7, 90)) + jobs(("k", 1, 8, 10), locality="server") + jobs(("c", 2, 1, 200))
    instance = Instance(cluster=Cluster.uniform(2), jobs=rows)
    schedule = run(instance, make_policy("easy"))
    assert schedule.start_us["k"] == 10_000_000
    where = {segment.job: segment.placement.servers for segment in schedule.segments}
    assert where["k"] == (0,)


def test_strict_virtual_order_waits_for_the_virtual_completion() -> None:
    # w = 10·4/8 = 5: due at 5, though the GPUs are free before.
    instance = Instance(cluster=Cluster.pool(8), jobs=jobs(("a", 0, 4, 10)))
    assert starts(instance, "asrpt-strict") == {"a": 5.0}


def test_budget_starts_what_is_not_due() -> None:
    instance = Instance(cluster=Cluster.pool(8), jobs=jobs(("a", 0, 4, 10), ("b", 0, 4, 10)))
    # B = 5, E = ⌊share · 4⌋
    assert starts(instance, "asrpt-budget:share=1") == {"a": 0.0, "b": 10.0}
    assert starts(instance, "asrpt-budget:share=0") == {"a": 5.0, "b": 10.0}


def test_budget_backfills_before_the_blocked_head() -> None:
    # w is due at 3; while it waits for a, the short job c runs free of charge and the long d does not.
    rows = jobs(("a", 0, 2, 8), ("w", 1, 8, 1), ("c", 2, 4, 3), ("d", 2, 1, 80))
    instance = Instance(cluster=Cluster.pool(8), jobs=rows)
    begun = starts(instance, "asrpt-budget:share=0")
    assert begun["w"] == 10.0
    assert begun["c"] == 3.0
    assert begun["d"] >= 10.0


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        # a and b start when due; w, due at 8.5, can start when b ends. p runs when a has left it a whole server.
        ("asrpt-budget:share=0:kappa=0", {"a": 3.75, "b": 7.5, "w": 17.5, "p": 13.75}),
        ("asrpt-guard:patience=0:kappa=0", {"a": 0.0, "b": 0.0, "w": 10.0, "p": 11.0}),
    ],
)
def test_backfill_counts_the_time_on_the_gpus_on_offer(policy: str, expected: dict[str, float]) -> None:
    # On one server p takes 3 s, but at first only one GPU is free on each: 15 s, which would delay w.
    table = {PlacementClass.ONE_SERVER: 1.0, PlacementClass.MANY_SERVERS: 5.0}
    slow = Job(id="p", release_s=9, gpus=2, work=Profiled(iterations=3, seconds_per_iteration=table))
    rows = jobs(("a", 0, 3, 10), ("b", 0, 3, 10), locality="server") + jobs(("w", 7, 8, 1))
    instance = Instance(cluster=Cluster.uniform(2, gpus=4), jobs=[*rows, slow])
    assert starts(instance, policy) == expected


def test_guard_gives_way_to_virtual_order() -> None:
    # A stream of short jobs keeps the wide one out under sjf; the guard ends that.
    stream = [(f"s{i:02}", 1.25 * i, 1, 2) for i in range(40)]
    instance = Instance(cluster=Cluster.pool(2), jobs=jobs(*stream, ("wide", 1, 2, 2)))
    assert starts(instance, "sjf")["wide"] >= 50
    patient = starts(instance, "asrpt-guard:order=shortest:discipline=fit-anything:patience=2")["wide"]
    assert patient <= 20


def test_guard_goes_up_without_an_event() -> None:
    # s is due at 1.5 and fits, but the long wide job is first; Γ = 10.
    rows = jobs(("a", 0, 1, 100), ("big", 1, 2, 100), ("s", 1, 1, 1))
    instance = Instance(cluster=Cluster.pool(2), jobs=rows)
    begun = starts(instance, "asrpt-guard:order=longest:discipline=strict:patience=0.1")
    assert begun == {"a": 0, "big": 100, "s": 11.5}


def test_guard_that_is_up_backfills_but_lends_nothing() -> None:
    # w is due at 1.75 and can start at 8 with two GPUs to spare: c ends before, d would hold one beyond.
    rows = jobs(("a", 0, 4, 8), ("w", 1, 6, 1), ("c", 4, 2, 3), ("d", 4, 1, 80))
    instance = Instance(cluster=Cluster.pool(8), jobs=rows)
    assert starts(instance, "asrpt-guard:patience=0") == {"a": 0, "c": 4, "d": 8, "w": 8}
    assert starts(instance, "asrpt:patience=0:headroom=0") == {"a": 0, "c": 4, "d": 8, "w": 8}


def test_default_protects_the_first_blocked_job() -> None:
    assert list(starts(LONG, "asrpt:headroom=0").values()) == [0, 100, 110]
    assert list(starts(SIX, "asrpt:headroom=0").values()) == [0, 100, 2]


def test_spare_gpus_are_lent_once() -> None:
    rows = jobs(("a", 0, 2, 10), ("b", 1, 3, 10), ("c", 2, 1, 100), ("d", 2, 1, 100))
    assert starts(Instance(cluster=Cluster.pool(4), jobs=rows), "easy") == {"a": 0, "b": 10, "c": 2, "d": 20}


def test_budget_is_free_again_when_its_jobs_end() -> None:
    # B = 4, E = 3: the first three start before they are due, and so does k, which would be due at 12.5.
    rows = jobs(*[(f"j{i}", 0, 1, 10) for i in range(3)], ("k", 10, 1, 10))
    begun = starts(Instance(cluster=Cluster.pool(4), jobs=rows), "asrpt-budget:share=1")
    assert begun == {"j0": 0, "j1": 0, "j2": 0, "k": 10}


def test_every_name_makes_a_policy_and_its_text_makes_it_again() -> None:
    for name in policy_names():
        policy = make_policy(name)
        assert policy.name == name
        assert make_policy(policy_text(policy)) == policy


def test_typo_is_answered_with_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="unknown policy 'fiffo'; did you mean 'fifo'"):
        make_policy("fiffo")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fifo:discipline=lazy", "unknown discipline 'lazy'"),
        ("fifo:depth=3", "unknown parameter of policy 'fifo' 'depth'"),
        ("fifo:name=x", "unknown parameter of policy 'fifo' 'name'"),
        ("fifo:strict", "must read name=value"),
        ("fifo:discipline=3", "unknown discipline 3"),
        ("asrpt:kappa=1:kappa=2", "parameter='kappa' is given twice"),
        ("asrpt-budget:share=1.5", "share=1.5 must be at most 1"),
        ("asrpt-budget:share=-1", "share=-1 must be at least 0"),
        ("asrpt-budget:order=tallest", "unknown order 'tallest'"),
        ("asrpt-guard:patience=nan", "patience=nan must be finite"),
        ("asrpt-guard:discipline=x", "unknown discipline 'x'"),
    ],
)
def test_bad_parameters_are_named(text: str, message: str) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError), match=message):
        make_policy(text)


def test_guarantee_is_reported_with_its_parameters() -> None:
    result = simulate(SIX, "asrpt-budget:share=0.5")
    report = result.guarantee
    assert report is not None
    assert (report.form, report.holds) == ("budget", True)
    assert report.parameters["B"] == 1
    assert report.parameters["E"] == 0
    assert simulate(SIX, "fifo").guarantee is None


@pytest.mark.parametrize("number", [np.float64(0.25), Decimal("0.25"), Fraction(1, 4)])
def test_any_kind_of_number_will_do(number: float) -> None:
    made: list[tuple[Policy, str]] = [
        (Asrpt(headroom=number, small=number, patience=number, kappa=number, tau=number), "asrpt:headroom=0.25"),
        (AsrptBudget(share=number, kappa=number), "asrpt-budget:share=0.25"),
    ]
    for policy, text in made:
        assert policy_text(policy).startswith(text.split(":")[0])
        assert set(map(type, policy.parameters.values())) <= {float, str}
        assert make_policy(policy_text(policy)) == policy
        assert run(LONG, policy) == run(LONG, make_policy(policy_text(policy)))
