"""Policies of frostline keep all the rules; planted mistakes are found, each by its rule and on a small instance."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from importlib.metadata import EntryPoint
from random import Random
from textwrap import indent
from threading import Lock
from types import ModuleType
from typing import Any, ClassVar

import pytest

from frostline import problem
from frostline.errors import InvalidValueError, UnknownNameError
from frostline.policies import (
    Decision,
    Policy,
    Preempt,
    Reallocate,
    Share,
    Start,
    Task,
    View,
    Wait,
    fewest_victims,
    make_policy,
    policy_names,
    registry,
)
from frostline.policies.base import WAIT
from frostline.policies.disciplines import fit_anything, strict
from frostline.policies.guarantee import BudgetPromise
from frostline.problem import (
    Cluster,
    Elastic,
    Fixed,
    Instance,
    Job,
    Placement,
    PlacementClass,
    Profiled,
    Reason,
    Refusal,
    Schedule,
    Segment,
    Server,
)
from frostline.scheduler import Scheduler
from frostline.simulation import run as simulated
from frostline.testing import (
    CLAIMS,
    RULES,
    ConformanceReport,
    assert_conforms,
    assert_within_guarantee,
    check_policy,
    contended_instances,
    instance_code,
)

CLAIMED = {
    "asrpt-strict": ["strict"],
    "fifo": ["strict"],
    "gittins": ["work-conserving"],
    "las": ["work-conserving"],
    "las-fair": ["work-conserving"],
    "ljf": ["work-conserving"],
    "serverfilling-srpt": ["work-conserving"],
    "sjf": ["work-conserving"],
    "smallest-area": ["work-conserving"],
    "srtf": ["work-conserving"],
}


@pytest.mark.parametrize("name", policy_names())
def test_every_registered_policy_conforms(name: str) -> None:
    assert_conforms(name, claims=CLAIMED.get(name), examples=100)


@pytest.mark.parametrize("policy", ["gittins:least_finished=1:thresholds=61/400/800/3000"])
def test_policies_conform_where_little_was_drawn(policy: str) -> None:
    assert_conforms(policy, claims=["work-conserving"], examples=100)


class Plain:
    """First come, first served, and all that a policy has to tell."""

    name = "mutant"
    parameters: ClassVar[dict[str, Any]] = {}
    uses_virtual_machine = False

    def priority(self, task: Task) -> Any:
        return task.number

    def decide(self, view: View) -> Decision:
        return fit_anything(view)


class Overtaking(Plain):
    """Says that it is strict, and scans the whole queue."""

    claims = ("strict",)


class OvertakingVirtually(Overtaking):
    uses_virtual_machine = True


class TieByHash(Plain):
    """Jobs of one duration in the order of the hashes of their ids."""

    def priority(self, task: Task) -> Any:
        return task.duration_us, hash(task.job.id)


class TieByAddress(Plain):
    """Jobs of one duration as they lie in memory."""

    def priority(self, task: Task) -> Any:
        return task.duration_us, id(task)


class TieByChance(Plain):
    """Jobs of one duration in the order of random numbers."""

    def __init__(self) -> None:
        self.random = Random(0)

    def priority(self, task: Task) -> Any:
        return task.duration_us, self.random.random()


class TieByTurns(Plain):
    """Every other run goes through jobs of one duration backwards."""

    def __init__(self) -> None:
        self.first: list[Task] = []

    def priority(self, task: Task) -> Any:
        if task.number == 0 and task not in self.first:
            self.first.append(task)
        return task.duration_us, -task.number if len(self.first) % 2 else task.number


class Idle(Plain):
    """Says that nothing waits that fits, and looks at the first task only."""

    claims = ("work-conserving",)

    def decide(self, view: View) -> Decision:
        return strict(view)


class PingPong(Plain):
    """Whoever has waited longest evicts whoever runs, ten seconds after it has started."""

    restart_s = 30.0

    def priority(self, task: Task) -> Any:
        return 0 if task.past is None else task.past.evicted_us

    def decide(self, view: View) -> Decision:
        first = view.waiting.first
        if first is None or view.free.fits(first.shape):
            return WAIT if first is None else Start(first)
        next_us = None
        for run in view.running:
            ripe_us = run.start_us + 10_000_000
            if ripe_us > view.now_us:
                next_us = ripe_us if next_us is None else min(next_us, ripe_us)
            elif victims := fewest_victims(view, first, [run]):
                return Preempt(first, victims)
        return Wait(next_us)


class EvictsAll(Plain):
    """Shortest first; all that run longer go where it is enough that one does."""

    restart_s = 1.0

    def priority(self, task: Task) -> Any:
        return task.duration_us

    def decide(self, view: View) -> Decision:
        decision, first = fit_anything(view), view.waiting.first
        if isinstance(decision, Start) or first is None:
            return decision
        limit_us = view.now_us + first.duration_us + 1_000_000
        longer = [run for run in view.running if run.start_us < view.now_us and run.end_us > limit_us]
        return Preempt(first, tuple(run.task for run in longer)) if fewest_victims(view, first, longer) else WAIT


class StaleView(Plain):
    """Goes by the free GPUs that it saw when it was asked before."""

    def __init__(self) -> None:
        self.seen = 0

    def decide(self, view: View) -> Decision:
        seen, self.seen = self.seen, view.free.total
        first = view.waiting.first
        return Start(first) if first is not None and first.gpus <= min(seen, view.free.total) else WAIT


class StaleTask(Plain):
    """Goes by the first waiting task of the instant, even when it has started."""

    def __init__(self) -> None:
        self.seen: tuple[int, Task | None] = (-1, None)

    def decide(self, view: View) -> Decision:
        if self.seen[0] != view.now_us:
            self.seen = view.now_us, view.waiting.first
        first = self.seen[1]
        return Start(first) if first is not None and view.free.fits(first.shape) else WAIT


class SpoilsView(Plain):
    """Frees the GPUs of all that runs, to see what would fit, and does not take them back."""

    def decide(self, view: View) -> Decision:
        first = view.waiting.first
        if first is not None and not view.free.fits(first.shape):
            for run in view.running:
                view.free.give(run.loads)
        return fit_anything(view)


class LastInFirstOut(Plain):
    """The last to arrive first, with a promise that only virtual order keeps."""

    def priority(self, task: Task) -> Any:
        return -task.number

    def decide(self, view: View) -> Decision:
        return strict(view)

    def promise(self, saturation: int) -> BudgetPromise:
        return BudgetPromise(0)


class Starves(Plain):
    """Never starts a job that asks for all GPUs."""

    def decide(self, view: View) -> Decision:
        first = min(
            (line.head for line in view.waiting.lines if line and line.shape.gpus < view.free.capacity), default=None
        )
        return Start(first[2]) if first is not None and view.free.fits(first[2].shape) else WAIT


class Impatient(Plain):
    """Wants to be asked again and again, and never starts anything."""

    def decide(self, view: View) -> Decision:
        return Wait(view.now_us + 1)


class Hasty(Plain):
    """Starts the first task whether it fits or not."""

    def decide(self, view: View) -> Decision:
        first = view.waiting.first
        return WAIT if first is None else Start(first)


class Broken(Plain):
    """Cannot decide."""

    def decide(self, view: View) -> Decision:
        raise KeyError("decide")


class Talks(Plain):
    """Answers what is no decision."""

    def decide(self, view: View) -> Decision:
        return "later"  # type: ignore[return-value]


class Sleeps(Plain):
    """Sees no job that arrives while another one runs, and is not woken for it."""

    def decide(self, view: View) -> Decision:
        return fit_anything(view) if not view.runs and view.arrived < 2 else WAIT


class Drifts(Plain):
    """Starts whenever it is asked at an odd microsecond, or before any other job has ended."""

    def decide(self, view: View) -> Decision:
        return fit_anything(view) if view.now_us % 1_000_000 or not view.runs else WAIT


class Wavers(Plain):
    """Evicts every other time that it is asked, and wants to be asked soon."""

    restart_s = 1.0

    def __init__(self) -> None:
        self.asked = 0

    def decide(self, view: View) -> Decision:
        self.asked += 1
        decision, first = fit_anything(view), view.waiting.first
        older = [run for run in view.running if run.start_us < view.now_us]
        if isinstance(decision, Start) or first is None or not older:
            return decision
        victims = fewest_victims(view, first, older)
        return Preempt(first, victims) if victims and self.asked % 2 else Wait(view.now_us + 1)


class EvictsBetween(Plain):
    """Evicts whenever it is asked at no whole second."""

    restart_s = 1.0

    def decide(self, view: View) -> Decision:
        decision, first = fit_anything(view), view.waiting.first
        if isinstance(decision, Start) or first is None or view.now_us % 1_000_000 == 0:
            return decision
        victims = fewest_victims(view, first, [run for run in view.running if run.start_us < view.now_us])
        return Preempt(first, victims) if victims else WAIT


class Sways(Plain):
    """Gives elastic jobs their most and their least GPUs in turn, every ten seconds."""

    restart_s = 1.0
    elastic = True

    def decide(self, view: View) -> Decision:
        first, next_us = view.waiting.first, (view.now_us // 10_000_000 + 1) * 10_000_000
        if first is not None and view.offer(first) is not None:
            return Start(first)
        if view.reallocated_us == view.now_us or view.now_us % 10_000_000:
            return Wait(next_us)
        shares, left = [], view.free.total
        for run in view.runs.values():
            work = run.task.job.work
            if run.start_us < view.now_us and isinstance(work, Elastic):
                gpus = work.widths[0] if run.gpus == work.widths[-1] else work.widths[-1]
                if gpus - run.gpus <= left:
                    left -= gpus - run.gpus
                    shares.append(Share(run.task, gpus))
        return Reallocate(tuple(shares), next_us)


class GivesTooMuch(Plain):
    """Gives the first elastic job one GPU more than its work can take."""

    restart_s = 1.0
    elastic = True

    def decide(self, view: View) -> Decision:
        first = view.waiting.first
        if first is None or view.offer(first) is None:
            return WAIT
        work = first.job.work
        if isinstance(work, Elastic) and view.reallocated_us != view.now_us:
            return Reallocate((Share(first, work.widths[-1] + 1),))
        return Start(first)


class BadRestart(Plain):
    """Cannot be run at all."""

    restart_s = -1.0


class DoubleBooking(Scheduler):
    """Puts every start that is no larger on the GPUs of the first server."""

    def advance(self, now_s: float) -> Any:
        decision = super().advance(now_s)
        return replace(decision, starts=tuple(self.spoilt(start) for start in decision.starts))

    def spoilt(self, start: Segment) -> Segment:
        gpus = start.placement.gpus
        return start if gpus > self.cluster.capacities[0] else start._replace(placement=Placement([(0, (gpus,))]))


class HalfGang(DoubleBooking):
    """Starts a job on half of its GPUs."""

    def spoilt(self, start: Segment) -> Segment:
        server, gpus = start.placement.loads[0]
        return start._replace(placement=Placement([(server, (-(-gpus // 2),))]))


class WrongDuration(DoubleBooking):
    """Takes every job to run as if it were in one server."""

    def spoilt(self, start: Segment) -> Segment:
        if len(start.placement.loads) == 1:
            return start
        return start._replace(end_us=start.start_us + (start.end_us - start.start_us + 1) // 2)


class NotThere(DoubleBooking):
    """Numbers the servers from one."""

    def spoilt(self, start: Segment) -> Segment:
        return start._replace(placement=Placement([(m + 1, (gpus,)) for m, gpus in start.placement.loads]))


class Unknown(DoubleBooking):
    """Starts a job that there is not."""

    def spoilt(self, start: Segment) -> Segment:
        return start._replace(job="nobody")


class Early(DoubleBooking):
    """Tells that jobs have started a second ago."""

    def spoilt(self, start: Segment) -> Segment:
        return start._replace(start_us=start.start_us - 1_000_000)


class TakesAll(Scheduler):
    """Refuses nobody."""

    def submit(self, job: Job) -> Refusal | None:
        super().submit(job)
        return None


class RefusesWide(Scheduler):
    """Refuses jobs that ask for all GPUs."""

    def submit(self, job: Job) -> Refusal | None:
        if job.gpus == self.cluster.gpus:
            return Refusal(job=job.id, need_gpus=job.gpus, largest_offer_gpus=0, reason=Reason.CLUSTER_TOO_SMALL)
        return super().submit(job)


class RefusesByRaising(Scheduler):
    """Raises where a job asks for all GPUs."""

    def submit(self, job: Job) -> Refusal | None:
        if job.gpus == self.cluster.gpus:
            raise RuntimeError("too wide")
        return super().submit(job)


class EvictsNobody(Scheduler):
    """Reports that jobs are evicted that do not run."""

    def advance(self, now_s: float) -> Any:
        return replace(super().advance(now_s), evictions=("nobody",))


POLICIES: dict[type[Plain], tuple[str, int]] = {
    Overtaking: ("strict", 3),
    OvertakingVirtually: ("strict", 1),
    TieByHash: ("deterministic", 3),
    TieByAddress: ("deterministic", 2),
    TieByChance: ("stateless", 1),
    TieByTurns: ("deterministic", 2),
    Idle: ("work-conserving", 3),
    PingPong: ("no-ping-pong", 2),
    EvictsAll: ("fewest-victims", 3),
    StaleView: ("stateless", 1),
    StaleTask: ("legal", 2),
    SpoilsView: ("read-only", 2),
    LastInFirstOut: ("guarantee", 3),
    Starves: ("completion", 1),
    Impatient: ("completion", 1),
    Hasty: ("legal", 2),
    Broken: ("legal", 1),
    Talks: ("legal", 1),
    Sleeps: ("completion", 2),
    Drifts: ("fixed-point", 2),
    Wavers: ("stateless", 2),
    EvictsBetween: ("fixed-point", 2),
    Sways: ("no-ping-pong", 2),
    GivesTooMuch: ("legal", 1),
    BadRestart: ("legal", 0),
}
"""Mistakes of policies: the rule that they break, and how many jobs it takes at most to show it."""

RARE = (EvictsAll, EvictsBetween, LastInFirstOut, Overtaking, PingPong, StaleTask, TieByHash, Wavers)
"""Those that it takes more instances to find, or to show on few jobs."""

SCHEDULERS: dict[type[Scheduler], tuple[str, int]] = {
    DoubleBooking: ("schedule", 2),
    HalfGang: ("gang", 1),
    WrongDuration: ("durations", 1),
    NotThere: ("gang", 1),
    Unknown: ("schedule", 1),
    Early: ("durations", 1),
    TakesAll: ("refusals", 1),
    RefusesWide: ("refusals", 1),
    RefusesByRaising: ("legal", 1),
    EvictsNobody: ("schedule", 1),
}
"""The same for schedulers."""


def shown(report: ConformanceReport, rule: str) -> tuple[str, Instance]:
    """How a rule is broken, and on which instance."""
    outcome = next(outcome for outcome in report.outcomes if outcome.rule == rule)
    assert outcome.status == "broken", str(report)
    assert outcome.instance is not None
    return outcome.text, outcome.instance


@pytest.mark.parametrize("mutant", POLICIES, ids=lambda mutant: mutant.__name__)
def test_mistakes_of_policies_are_found_on_small_instances(mutant: type[Plain]) -> None:
    rule, most_jobs = POLICIES[mutant]
    text, instance = shown(check_policy(mutant(), examples=300 if mutant in RARE else 100), rule)
    assert len(instance.jobs) <= most_jobs, text
    assert_readable(instance)


@pytest.mark.parametrize("mutant", SCHEDULERS, ids=lambda mutant: mutant.__name__)
def test_mistakes_of_schedulers_are_found_on_small_instances(mutant: type[Scheduler]) -> None:
    rule, most_jobs = SCHEDULERS[mutant]
    text, instance = shown(check_policy("sjf", scheduler=mutant, examples=100), rule)
    assert len(instance.jobs) <= most_jobs, text
    assert_readable(instance)


EIGHT: dict[str, tuple[type[Plain] | type[Scheduler], str]] = {
    "double booking": (DoubleBooking, r"server 's0' holds up to 2 of its 1 GPUs from 0.0 s to 1.0 s: jobs 'J1', 'J2'"),
    "half gang": (HalfGang, "at 0 s job 'J1' is given 1 of the 2 GPUs that it asks for"),
    "overtaking in strict mode": (Overtaking, "at 0 s it starts job 'J3' although job 'J2' is before it"),
    "non-deterministic tie": (
        TieByHash,
        r"where the jobs have other names job '(J\d)' runs from 0 s to 1 s on 1 GPU of server 0, "
        r"where otherwise job '(?!\1)J\d' runs from 0 s to 1 s on 1 GPU of server 0",
    ),
    "idle while work fits": (Idle, "at 0 s job 'J3' waits although it fits: it asks for 1 GPU, with 1 GPU free"),
    "eviction ping-pong": (
        PingPong,
        r"at \d+ s it evicts job '(J\d)' for job '(?!\1)J\d': nothing is new, and job '\1' has done nothing in its "
        "last two runs",
    ),
    "stale view": (StaleView, "at 0 s it waits, and when it is asked again it starts job 'J1'"),
    "wrong duration": (
        WrongDuration,
        "at 0 s job 'J1' is announced to run from 0 s to 0.5 s, and would end at 1 s",
    ),
}
"""The mistakes that matter most, and how each is told."""


@pytest.mark.parametrize("mistake", EIGHT)
def test_mistakes_are_told_for_what_they_are(mistake: str) -> None:
    mutant, told = EIGHT[mistake]
    if issubclass(mutant, Scheduler):
        report, rule = check_policy("sjf", scheduler=mutant, examples=100), SCHEDULERS[mutant][0]
    else:
        report, rule = check_policy(mutant(), examples=300 if mutant in RARE else 100), POLICIES[mutant][0]
    text, instance = shown(report, rule)
    assert re.fullmatch(told, text), text
    assert sum(job.work.duration_s for job in instance.jobs if isinstance(job.work, Fixed)) <= 30


def assert_readable(instance: Instance) -> None:
    """Few GPUs, whole seconds, and short names."""
    assert instance.cluster.gpus <= 4
    assert all(job.release_s.is_integer() and job.locality == "any" for job in instance.jobs)
    assert all(re.fullmatch(r"J[1-6]", job.id) for job in instance.jobs)
    assert len(instance_code(instance).splitlines()) <= 9


def test_policies_of_plug_ins_are_checked_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    plugged = ModuleType("plugged_in")
    plugged.Idle, plugged.Plain = Idle, Plain  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "plugged_in", plugged)
    found = [EntryPoint(name.lower(), f"plugged_in:{name}", "frostline.policies") for name in ("Idle", "Plain")]
    monkeypatch.setattr(registry, "entry_points", lambda group: found)
    registry._factories.cache_clear()
    try:
        assert {"idle", "plain"} <= set(policy_names())
        assert_conforms("plain", claims=["work-conserving"], examples=50)
        text, _ = shown(check_policy("idle", examples=100), "work-conserving")
        assert "waits although it fits" in text
    finally:
        registry._factories.cache_clear()


def test_elastic_work_is_drawn_for_policies_that_change_it() -> None:
    for name, expected in {"sjf": set(), "sia": {"sia"}, "icefrog-rigid": {"icefrog-rigid"}}.items():
        drawn: set[str] = set()

        class Noted(Scheduler):
            def submit(self, job: Job) -> Refusal | None:
                drawn.update([name] if isinstance(job.work, Elastic) else [])  # noqa: B023
                return super().submit(job)

        check_policy(name, scheduler=Noted, examples=25)
        assert drawn == expected


def test_a_counterexample_is_told_with_its_source() -> None:
    report = check_policy(Overtaking(), examples=100)
    assert not report.passed
    assert [outcome.rule for outcome in report.broken] == ["strict"]
    text, instance = shown(report, "strict")
    assert text == "at 0 s it starts job 'J3' although job 'J2' is before it"
    assert str(report) == (
        "policy 'mutant' breaks 1 rule: 100 instances, seed 0\n\n"
        f"strict: nobody overtakes the first job in order\n    {text}\n  on\n" + indent(instance_code(instance), "    ")
    )


def test_whoever_must_conform_raises_with_the_report() -> None:
    report = check_policy(Idle(), examples=100, seed=3)
    with pytest.raises(AssertionError) as raised:
        assert_conforms(Idle(), examples=100, seed=3)
    assert str(raised.value) == str(report)


def test_equal_seeds_give_equal_reports_and_others_other_instances() -> None:
    drawn: list[set[str]] = []

    class Noted(Scheduler):
        def __init__(self, cluster: Cluster, policy: Policy, expected: Iterable[Job]) -> None:
            drawn[-1].add(instance_code(Instance(cluster=cluster, jobs=tuple(expected))))
            super().__init__(cluster, policy, expected)

    for seed in (0, 0, 1):
        drawn.append(set())
        assert check_policy("easy", examples=20, seed=seed, scheduler=Noted).passed
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_policy_that_cannot_be_copied_is_used_as_it_is() -> None:
    policy = Plain()
    policy.lock = Lock()  # type: ignore[attr-defined]
    assert check_policy(policy, examples=20).passed


def test_what_is_not_claimed_is_not_checked() -> None:
    statuses = {outcome.rule: outcome.status for outcome in check_policy("easy", examples=20).outcomes}
    assert list(statuses) == list(RULES)
    open_claims = {*CLAIMS, "guarantee", "fewest-victims", "no-ping-pong"}
    assert {rule for rule, status in statuses.items() if status == "not claimed"} == open_claims
    assert set(statuses.values()) == {"kept", "not claimed"}


def test_claims_of_the_policy_give_way_to_those_that_are_stated() -> None:
    assert check_policy(Overtaking(), claims=[], examples=100).passed
    assert shown(check_policy("sjf", claims=["strict"]), "strict")


def test_own_instances_are_made_smaller_within_their_strategy() -> None:
    wide = contended_instances(max_gpus=3, max_servers=1).filter(lambda drawn: drawn.cluster.gpus == 3)
    _, instance = shown(check_policy(Idle(), strategy=wide), "work-conserving")
    assert instance.cluster.gpus == 3
    assert len(instance.jobs) <= 4


def test_policies_under_check_see_contention_evictions_and_jobs_that_never_fit() -> None:
    seen: Counter[str] = Counter()

    class Counted(Scheduler):
        def submit(self, job: Job) -> Refusal | None:
            refusal = super().submit(job)
            seen["refused"] += refusal is not None
            return refusal

        def advance(self, now_s: float) -> Any:
            decision = super().advance(now_s)
            seen["evicted"] += len(decision.evictions)
            return decision

    for name in ("las", "srtf"):
        seen.clear()
        check_policy(name, scheduler=Counted, examples=100)
        assert seen["evicted"] > 10, name
        assert seen["refused"] > 10


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"policy": "sfj"}, UnknownNameError, "sjf"),
        ({"policy": "sjf", "claims": ["work-conservin"]}, UnknownNameError, "work-conserving"),
        ({"policy": "sjf", "examples": 0}, InvalidValueError, "examples=0 must be at least 1"),
        ({"policy": "sjf", "seed": -1}, InvalidValueError, "seed=-1 must be at least 0"),
        ({"policy": "sjf", "seed": 0.5}, InvalidValueError, "seed=0.5"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        check_policy(**arguments)


CLUSTERS = [
    Cluster.pool(3),
    Cluster.uniform(2, gpus=4),
    Cluster(servers=(Server(id="s0", gpus=4), Server(id="s1", gpus=2))),
    Cluster(servers=()),
]


@pytest.mark.parametrize("cluster", CLUSTERS, ids=str)
def test_the_source_of_an_instance_makes_it_again(cluster: Cluster) -> None:
    table = {PlacementClass.ONE_SERVER: 0.5, PlacementClass.MANY_SERVERS: 2.0}
    jobs = [
        Job(id="it's", release_s=0.25, work=Fixed(duration_s=1e-06), gpus=1, user="ann", estimate_s=3),
        Job(id="b", release_s=7, work=Profiled(iterations=3, seconds_per_iteration=table), gpus=2, locality="fewest"),
    ]
    for instance in (Instance(cluster=cluster, jobs=jobs), Instance(cluster=cluster, jobs=())):
        assert eval(instance_code(instance), vars(problem)) == instance


def test_bounds_that_are_promised_are_asserted() -> None:
    jobs = [Job(id=f"J{number}", release_s=0, work=Fixed(duration_s=1), gpus=1) for number in range(1, 4)]
    instance = Instance(cluster=Cluster.pool(1), jobs=jobs)
    backwards = simulated(instance, LastInFirstOut())
    with pytest.raises(AssertionError, match="job 'J1' breaks the budget form of policy 'mutant' by 1 s"):
        assert_within_guarantee(instance, backwards, LastInFirstOut())
    with pytest.raises(AssertionError, match="policy 'fifo' promises nothing"):
        assert_within_guarantee(instance, backwards, make_policy("fifo"))
    with pytest.raises(AssertionError, match="missing_job"):
        assert_within_guarantee(instance, Schedule(segments=()), LastInFirstOut())
    assert_within_guarantee(instance, simulated(instance, make_policy("asrpt")), make_policy("asrpt"))
