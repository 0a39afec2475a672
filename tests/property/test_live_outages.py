"""The live scheduler under failures, drains and recoveries that come at any time, several at one instant too."""

from __future__ import annotations

from contextlib import suppress
from heapq import heappop

from hypothesis import given
from hypothesis import strategies as st

from frostline.errors import InvalidValueError
from frostline.policies import make_policy
from frostline.prediction import OnlinePredictor
from frostline.problem import Instance, Segment
from frostline.scheduler import Decision, Scheduler
from frostline.simulation.truth import Truth
from frostline.testing import checkpointed, instances
from frostline.units import US_PER_S, seconds

POLICIES = (
    "fifo",
    "easy",
    "sjf:discipline=backfill",
    "ljf",
    "asrpt",
    "asrpt-strict",
    "asrpt-budget",
    "asrpt-guard:patience=0",
    "las:thresholds=5/20:restart_s=1:starvation=2",
    "las:thresholds=1:restart_s=0",
    "srtf:restart_s=0.5",
    "icefrog:round_s=7:restart_s=1",
    "pollux:round_s=5:restart_s=0",
    "sia:round_s=5:restart_s=1",
)
Report = tuple[int, int, str, int]
"""Instant in seconds, turn within it, what is reported, and the server."""
REPORTS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 1), st.sampled_from(["fail", "recover", "drain"]), st.integers(0, 2)),
    max_size=10,
).map(sorted)


class Play:
    """A cluster as it is, beside the scheduler that decides for it."""

    def __init__(self, instance: Instance, policy: str, model: str | None) -> None:
        self.instance = instance
        predictor = None if model is None else OnlinePredictor(model)
        self.scheduler = Scheduler(instance.cluster, make_policy(policy), instance.jobs, predictor=predictor)
        self.truth = Truth(instance, self.scheduler)
        self.holds: dict[str, Segment] = {}
        self.done: list[str] = []
        self.wake_us: int | None = None

    def finish(self, now_us: int) -> None:
        ends = self.truth.ends
        while ends and ends[0][0] == now_us:
            job = heappop(ends)[2]
            self.truth.finish(job)
            del self.holds[job]
            self.done.append(job)

    def report(self, event: str, server: int) -> None:
        servers = self.instance.cluster.servers
        with suppress(InvalidValueError):
            getattr(self.scheduler, event)(servers[server % len(servers)].id)

    def advance(self, now_us: int) -> None:
        down, drained = set(self.scheduler.down), set(self.scheduler.drained)
        decision = self.scheduler.advance(seconds(now_us))
        self.check_failed(decision, set(self.scheduler.down) - down)
        for job in (*decision.failed, *decision.evictions):
            del self.holds[job]
        before = len(self.truth.segments)
        self.truth.follow(decision.starts, decision.evictions, now_us, decision.failed)
        for start, true in zip(decision.starts, self.truth.segments[before:], strict=True):
            assert start == true or self.scheduler.outlook is not None
            self.check_start(start, drained)
            self.holds[start.job] = start
        self.wake_us = None if decision.wake_s is None else round(decision.wake_s * US_PER_S)
        self.check_loads()

    def check_failed(self, decision: Decision, newly: set[str]) -> None:
        """Whoever is on a server that has failed is told to have lost all, and still is when it has recovered."""
        hit = {job for job, segment in self.holds.items() if newly & self.servers(segment)}
        assert hit <= set(decision.failed) <= set(self.holds)

    def servers(self, segment: Segment) -> set[str]:
        return {self.instance.cluster.servers[m].id for m in segment.placement.servers}

    def check_start(self, start: Segment, drained: set[str]) -> None:
        """Nobody is started on a server that is down or drained; who changes its level there may stay."""
        shut = set(self.scheduler.down) | set(self.scheduler.drained)
        stays = start.job in self.holds and self.holds[start.job].placement == start.placement
        assert not self.servers(start) & set(self.scheduler.down)
        assert stays or not self.servers(start) & shut

    def check_loads(self) -> None:
        used = [0] * len(self.instance.cluster.servers)
        for segment in self.holds.values():
            for m, gpus in segment.placement.loads:
                used[m] += gpus
        assert all(gpus <= server.gpus for gpus, server in zip(used, self.instance.cluster.servers, strict=True))
        assert not set().union(*map(self.servers, self.holds.values())) & set(self.scheduler.down)
        waiting = set(self.scheduler.waiting)
        assert waiting.isdisjoint(self.holds)
        assert set(self.scheduler.stranded) <= waiting

    def run_until(self, until_us: int | None, now_us: int) -> int:
        """Let jobs end, and the scheduler wake, until an instant, or to the end."""
        while True:
            ends = self.truth.ends
            times = [t for t in (ends[0][0] if ends else None, self.wake_us) if t is not None and t > now_us]
            if not times or (until_us is not None and min(times) >= until_us):
                return now_us
            if until_us is None and len(self.done) == len(self.instance.jobs):
                return now_us
            now_us = min(times)
            self.finish(now_us)
            self.advance(now_us)


@given(
    instances(max_jobs=6, localities=("any", "server", "fewest"), works=("fixed", "profiled", "elastic")).flatmap(
        checkpointed
    ),
    st.sampled_from([*((policy, None) for policy in POLICIES), *((policy, "median") for policy in POLICIES[:-3])]),
    REPORTS,
)
def test_whatever_is_reported_all_jobs_end_once_all_servers_are_back(
    instance: Instance, policy: tuple[str, str | None], reports: list[Report]
) -> None:
    play, now_us = Play(instance, *policy), 0
    for job in instance.jobs:
        play.truth.submit(job)
    play.advance(0)
    for at_s, turn in sorted({report[:2] for report in reports}):
        now_us = play.run_until(at_s * US_PER_S, now_us)
        now_us = max(now_us, at_s * US_PER_S)
        play.finish(now_us)
        for event, server in [report[2:] for report in reports if report[:2] == (at_s, turn)]:
            play.report(event, server)
        play.advance(now_us)
    for server in (*play.scheduler.down, *play.scheduler.drained):
        play.scheduler.recover(server)
    play.finish(now_us)
    play.advance(now_us)
    assert play.scheduler.stranded == ()
    play.run_until(None, now_us)
    assert sorted(play.done) == sorted(job.id for job in instance.jobs)
