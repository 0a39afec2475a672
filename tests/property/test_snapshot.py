"""A scheduler that is put back to an earlier moment answers as it did then, to the byte."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from frostline.policies import make_policy, policy_names
from frostline.prediction import OnlinePredictor
from frostline.problem import Instance, Outage
from frostline.scheduler import Scheduler
from frostline.simulation import run
from frostline.testing import checkpointed, instances, outages

ELASTIC, PLANNED = ("icefrog", "optimus", "pollux", "sia"), "icefrog-rigid"
SETTINGS = {
    "las": "las:thresholds=5/20:restart_s=1:starvation=2",
    "gittins": "gittins:thresholds=5/20:restart_s=1:starvation=2:least_finished=1",
    "srtf": "srtf:restart_s=0.5",
    "las-fair": "las-fair:round_s=7:restart_s=0.5",
    "serverfilling-srpt": "serverfilling-srpt:restart_s=0.5",
    "icefrog": "icefrog:round_s=7:restart_s=0.5",
    "optimus": "optimus:round_s=6:restart_s=1",
    "pollux": "pollux:round_s=5:restart_s=1",
    "sia": "sia:round_s=5:restart_s=1",
}
PREDICTED = [name for name in policy_names() if name not in (*ELASTIC, PLANNED)]
Call = tuple[str, tuple[Any, ...], str]


class Recorded(Scheduler):
    """Writes down what it is asked, and what it answers."""

    calls: list[Call]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.calls = []

    def _noted(self, name: str, *arguments: Any) -> Any:
        answer = getattr(Scheduler, name)(self, *arguments)
        self.calls.append((name, arguments, said(self, answer)))
        return answer

    def submit(self, job: Any) -> Any:
        return self._noted("submit", job)

    def finish(self, job: str, size: float | None = None, status: str = "") -> None:
        self._noted("finish", job, size, status)

    def fail(self, server: str) -> None:
        self._noted("fail", server)

    def recover(self, server: str) -> None:
        self._noted("recover", server)

    def advance_us(self, now_us: int) -> Any:
        return self._noted("advance_us", now_us)


def said(scheduler: Scheduler, answer: Any) -> str:
    """An answer as text, with what the scheduler shows."""
    return repr((answer, scheduler.failed, scheduler.waiting, scheduler.down, scheduler.stranded))


def answers(scheduler: Scheduler, calls: list[Call]) -> Iterator[str]:
    """What a scheduler answers to some calls."""
    for name, arguments, _ in calls:
        yield said(scheduler, getattr(scheduler, name)(*arguments))


@st.composite
def cases(draw: st.DrawFn, *works: str) -> tuple[Instance, tuple[Outage, ...]]:
    drawn = draw(instances(max_jobs=6, localities=("any", "server", "fewest"), works=works))
    if draw(st.booleans()):
        return drawn, ()
    return draw(checkpointed(drawn)), draw(outages(drawn.cluster))


def check(case: tuple[Instance, tuple[Outage, ...]], make: Callable[[], Any], model: str | None, at: float) -> None:
    """Replay the calls of a simulation, with a snapshot on the way from which others go on."""
    instance, down = case
    made: list[Recorded] = []

    def recorded(*arguments: Any, **named: Any) -> Recorded:
        made.append(Recorded(*arguments, **named))
        return made[-1]

    with patch("frostline.simulation.engine.Scheduler", recorded):
        run(instance, make(), predictor=None if model is None else OnlinePredictor(model), outages=down)
    calls = made[0].calls
    cut = int(at * len(calls))
    predictor = None if model is None else OnlinePredictor(model)
    scheduler = Scheduler(instance.cluster, make(), instance.jobs, predictor=predictor)
    told = [answer for *_, answer in calls]
    assert list(answers(scheduler, calls[:cut])) == told[:cut]
    snapshot = scheduler.snapshot()
    pickled = pickle.dumps(snapshot)
    assert list(answers(scheduler, calls[cut:])) == told[cut:]
    for again in (snapshot, snapshot, pickle.loads(pickled)):
        assert list(answers(Scheduler.restore(again), calls[cut:])) == told[cut:]


@given(cases("fixed", "profiled", "training"), st.sampled_from(PREDICTED), st.floats(0, 1))
def test_known_sizes(case: tuple[Instance, tuple[Outage, ...]], name: str, at: float) -> None:
    check(case, lambda: make_policy(SETTINGS.get(name, name)), None, at)


@given(cases("fixed", "elastic"), st.sampled_from([*ELASTIC, PLANNED]), st.floats(0, 1))
def test_elastic_jobs(case: tuple[Instance, tuple[Outage, ...]], name: str, at: float) -> None:
    instance, down = case
    if name == PLANNED:
        instance = instance.replace(jobs=[job.replace(checkpoint_s=None) for job in instance.jobs])
    check((instance, down), lambda: make_policy(SETTINGS.get(name, name)), None, at)


@given(cases("fixed", "profiled"), st.sampled_from(PREDICTED), st.sampled_from(["median", "combined"]), st.floats(0, 1))
def test_predicted_sizes(case: tuple[Instance, tuple[Outage, ...]], name: str, model: str, at: float) -> None:
    check(case, lambda: make_policy(SETTINGS.get(name, name)), model, at)
