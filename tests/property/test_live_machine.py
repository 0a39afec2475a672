"""A live scheduler that is told anything, in any order: it never gives a GPU twice, and errors change nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from frostline.errors import FrostlineError
from frostline.prediction import OnlinePredictor
from frostline.problem import Cluster, Elastic, Job, Locality, Segment
from frostline.scheduler import Decision, Scheduler
from frostline.testing import clusters, jobs

IDS = st.sampled_from([f"j{i}" for i in range(5)])
SERVERS = st.sampled_from(["s0", "s1", "s2"])
STEPS = st.sampled_from([0.0, 0.5, 1.0, 3.0, 10.0, 100.0])
KNOWING = ("easy", "asrpt", "asrpt-budget", "las:thresholds=5:restart_s=1", "srtf:restart_s=0")
ELASTIC = ("icefrog:round_s=7:restart_s=1", "sia:round_s=5:restart_s=1")


class LiveScheduler(RuleBasedStateMachine):
    """A cluster as it is, beside the scheduler that decides for it."""

    @initialize(
        cluster=clusters(), policy=st.sampled_from([*KNOWING, *ELASTIC, "icefrog-rigid"]), predicted=st.booleans()
    )
    def begin(self, cluster: Cluster, policy: str, predicted: bool) -> None:
        predictor = OnlinePredictor("median") if predicted and policy in KNOWING else None
        self.scheduler = Scheduler(cluster, policy, predictor=predictor)
        self.now_s, self.wake_s = 0.0, None
        self.jobs: dict[str, Job] = {}  # accepted, neither ended nor withdrawn
        self.holds: dict[str, Segment] = {}
        self.reported: set[str] = set()  # ended by a report that has not taken effect
        self.arrived: set[str] = set()
        self.known: set[str] = set()

    def told(self, event: str, *arguments: Any, fine: bool | None = None) -> bool:
        """Tell the scheduler something; where it is refused nothing has changed. Whether it was taken."""
        before = self.visible
        try:
            getattr(self.scheduler, event)(*arguments)
        except FrostlineError as error:
            assert fine is not True, error
            assert self.visible == before
            return False
        assert fine is not False
        return True

    @property
    def visible(self) -> tuple[object, ...]:
        scheduler = self.scheduler
        return scheduler.waiting, scheduler.stranded, scheduler.down, scheduler.drained

    @rule(job_id=IDS, job=jobs(localities=tuple(Locality), works=("fixed", "profiled", "elastic")), delay_s=STEPS)
    def submit(self, job_id: str, job: Job, delay_s: float) -> None:
        job = job.replace(id=job_id, release_s=self.now_s + delay_s)
        if job_id in self.known:
            with pytest.raises(FrostlineError):
                self.scheduler.submit(job)
        elif self.scheduler.submit(job) is None:
            self.jobs[job_id] = job
            self.known.add(job_id)

    @rule(job_id=IDS, size=st.sampled_from([1.0, 7.0]))
    def finish(self, job_id: str, size: float) -> None:
        if self.told("finish", job_id, size, fine=job_id in self.holds and job_id not in self.reported):
            self.reported.add(job_id)

    @rule(job_id=IDS)
    def withdraw(self, job_id: str) -> None:
        if self.told("withdraw", job_id, fine=job_id in self.jobs and job_id not in self.holds):
            del self.jobs[job_id]

    @rule(job_id=IDS, iterations=st.integers(-1, 30), pace_s=st.sampled_from([None, 0.0, 0.25]))
    def progress(self, job_id: str, iterations: int, pace_s: float | None) -> None:
        runs = job_id in self.holds and job_id not in self.reported
        self.told("progress", job_id, iterations, pace_s, fine=None if runs else False)

    @rule(job_id=IDS, realised=st.sampled_from([-1.0, 0.5, float("nan")]))
    def report_metric(self, job_id: str, realised: float) -> None:
        self.told("report_metric", job_id, realised, 1.0)

    @rule(server=SERVERS, event=st.sampled_from(["fail", "recover", "drain"]))
    def server(self, server: str, event: str) -> None:
        self.told(event, server)

    @rule(step_s=STEPS)
    def advance(self, step_s: float) -> None:
        self.go_to(self.now_s + step_s)

    @precondition(lambda self: self.wake_s is not None)
    @rule()
    def wake(self) -> None:
        self.go_to(self.wake_s)

    @rule()
    def go_back(self) -> None:
        self.told("advance", self.now_s - 1.0, fine=None if self.now_s == 0 else False)

    @rule()
    def save_and_load(self) -> None:
        self.scheduler = Scheduler.restore(self.scheduler.snapshot())

    def go_to(self, now_s: float) -> None:
        self.now_s = max(now_s, self.now_s)
        for job in self.reported:
            del self.holds[job], self.jobs[job]
        self.reported.clear()
        self.follow(self.scheduler.advance(self.now_s))
        again = self.scheduler.decide()
        assert not again.starts
        assert not again.evictions

    def follow(self, decision: Decision) -> None:
        for job in (*decision.failed, *decision.evictions):
            del self.holds[job]
        shut = {*self.scheduler.down, *self.scheduler.drained}
        for start in decision.starts:
            assert start.start_s == self.now_s < start.end_s
            stays = start.job in self.holds and self.holds[start.job].placement == start.placement
            assert stays or (start.job not in self.holds and not self.servers(start) & shut)
            self.holds[start.job] = start
        self.wake_s = decision.wake_s
        assert self.wake_s is None or self.wake_s > self.now_s
        self.arrived = {job for job, it in self.jobs.items() if it.release_s <= self.now_s}

    def servers(self, segment: Segment) -> set[str]:
        return {self.scheduler.cluster.servers[m].id for m in segment.placement.servers}

    @invariant()
    def no_gpu_is_given_twice(self) -> None:
        used = [0] * len(self.scheduler.cluster.servers)
        for segment in self.holds.values():
            for m, gpus in segment.placement.loads:
                used[m] += gpus
            assert not self.servers(segment) & set(self.scheduler.down)
        assert all(gpus <= it.gpus for gpus, it in zip(used, self.scheduler.cluster.servers, strict=True))

    @invariant()
    def a_gang_holds_all_its_gpus_or_none(self) -> None:
        for job, segment in self.holds.items():
            work = self.jobs[job].work
            widths = work.widths if isinstance(work, Elastic) and self.scheduler.policy.name in "icefrog sia" else ()
            assert segment.placement.gpus in (widths or (self.jobs[job].gpus,))

    @invariant()
    def whoever_has_arrived_runs_or_waits(self) -> None:
        waiting = self.arrived - set(self.holds)
        assert waiting & set(self.jobs) <= set(self.scheduler.waiting) <= waiting
        assert set(self.scheduler.stranded) <= set(self.scheduler.waiting)

    def teardown(self) -> None:
        """Once all servers are back and whoever runs ends, everybody runs."""
        self.go_to(self.now_s)
        for server in (*self.scheduler.down, *self.scheduler.drained):
            self.told("recover", server)
        for _ in range(60):
            for job in [job for job in self.holds if job not in self.reported]:
                self.finish(job, 1.0)
            self.go_to(self.now_s if self.holds or self.wake_s is None else self.wake_s)
        assert not self.jobs


def test_live_scheduler() -> None:
    run_state_machine_as_test(LiveScheduler, settings=settings(max_examples=60, stateful_step_count=30, deadline=None))
