"""Which engine runs a simulation, and what the compiled twin refuses."""

from __future__ import annotations

import doctest
import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.policies import make_policy
from frostline.problem import Cluster, Fixed, Instance, Job, Outage, Profiled
from frostline.simulation import engines, run, simulate
from frostline.simulation.compiled import NotCoveredError, Twin, kernel
from frostline.traces import generate_jobs

needs_numba = pytest.mark.skipif(
    find_spec("numba") is None or os.environ.get("FROSTLINE_JIT") == "0", reason="needs the extra fast"
)


def one(**changes: object) -> Instance:
    job = Job(id="a", release_s=0, work=Fixed(duration_s=10), gpus=2)
    return Instance(cluster=Cluster.uniform(2, gpus=4), jobs=(job.replace(**changes),))


@needs_numba
@pytest.mark.parametrize(
    ("policy", "settings", "what"),
    [
        ("fifo", {"predictor": "median"}, "predicted sizes"),
        ("fifo", {"outages": [Outage(server="s0", start_s=1, end_s=2)]}, "outages"),
        ("fifo", {"restart_s": 5}, "a restart"),
        ("srtf", {}, "policy 'srtf'"),
        ("asrpt-guard:order=root-area", {}, "the order of policy 'asrpt-guard'"),
    ],
)
class TestNotCovered:
    def test_it_is_said(self, policy, settings, what):
        with pytest.raises(NotCoveredError, match=f"engine='compiled' does not cover {what}"):
            simulate(one(), policy, engine="compiled", **settings)

    def test_auto_runs_the_reference(self, policy, settings, what, monkeypatch):
        monkeypatch.setattr(engines, "_MANY", 0)
        assert (
            simulate(one(), policy, engine="auto", **settings).schedule == simulate(one(), policy, **settings).schedule
        )


def test_work_that_is_not_fixed_is_not_covered():
    work = Profiled(iterations=3, seconds_per_iteration={"one_server": 1.0})
    with pytest.raises(NotCoveredError, match="work that is not fixed"):
        Twin(one(work=work), make_policy("fifo"), kernel)


@pytest.mark.parametrize(
    ("policy", "changes"),
    [
        ("sjf", {"gpus": 1000, "work": Fixed(duration_s=8e9)}),
        ("asrpt-guard:patience=1e6", {"work": Fixed(duration_s=8e9)}),
        ("asrpt:headroom=0.12345678901234567", {}),
    ],
)
def test_numbers_that_may_leave_64_bits_are_not_covered(policy, changes):
    instance = one(**changes).replace(cluster=Cluster.pool(1000))
    with pytest.raises(NotCoveredError, match="64 bits"):
        Twin(instance, make_policy(policy), kernel)


def test_an_unknown_engine_is_refused():
    with pytest.raises(UnknownNameError, match="engine"):
        simulate(one(), "fifo", engine="fast")


@needs_numba
class TestChoice:
    def test_auto_takes_the_twin_where_there_are_jobs_enough(self, monkeypatch):
        taken = []
        monkeypatch.setattr(engines, "Twin", lambda *given: taken.append(given) or Twin(*given))
        monkeypatch.setattr(engines, "_MANY", 2)
        jobs = generate_jobs(2, seed=1, gpus=8)
        for count in (1, 2):
            run(Instance(cluster=Cluster.uniform(2), jobs=jobs[:count]), make_policy("fifo"), engine="auto")
        assert [len(instance.jobs) for instance, *_ in taken if instance.jobs[0].id != "a"] == [2]

    def test_nothing_is_compiled_where_that_is_switched_off(self, monkeypatch):
        monkeypatch.setenv("FROSTLINE_JIT", "0")
        monkeypatch.setattr(engines, "_MANY", 0)
        assert simulate(one(), "fifo", engine="auto").metrics.jobs == 1
        with pytest.raises(InvalidValueError, match="engine='compiled' needs numba"):
            simulate(one(), "fifo", engine="compiled")

    def test_an_unknown_placement_is_refused_as_by_the_reference(self):
        for engine in ("reference", "compiled"):
            with pytest.raises(UnknownNameError, match="placement method"):
                run(one(), make_policy("fifo"), placement="random", engine=engine)

    def test_progress_is_told_and_can_stop_a_run(self, monkeypatch):
        from frostline.simulation.compiled import twin

        monkeypatch.setattr(twin, "_INSTANTS", 10)
        instance = Instance(cluster=Cluster.uniform(2), jobs=generate_jobs(40, seed=1, gpus=16))
        told: list[tuple[int, int]] = []
        simulate(instance, "sjf", engine="compiled", on_progress=lambda *counts: told.append(counts))
        assert len(told) > 3 and told == sorted(told) and told[-1] == (40, 40)

        def stop(done: int, jobs: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            simulate(instance, "sjf", engine="compiled", on_progress=stop)


def test_without_jobs_there_is_nothing_to_play():
    twin = Twin(Instance(cluster=Cluster(servers=()), jobs=one().jobs), make_policy("asrpt-budget"), kernel)
    twin.run()
    schedule = twin.schedule()
    assert schedule.segments == () and [refusal.job for refusal in schedule.refused] == ["a"]


@needs_numba
def test_the_example_of_the_docs_runs():
    docs = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text("utf-8")
    said: list[str] = []
    block = re.search(r"```python\n(.*?)```", docs, re.DOTALL)[1]
    runner = doctest.DocTestRunner()
    runner.run(doctest.DocTestParser().get_doctest(block, {}, "docs/simulation.md", None, 0), out=said.append)
    assert not said, "".join(said)
    assert runner.tries == 3
