"""Elastic work: times do not rise with the level, durations are those of its iterations, files bring it back."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostline.problem import Cluster, Elastic, Instance, Job, Placement, PlacementClass, digest, load_instance, save
from frostline.testing import elastic_works
from frostline.timing.duration import iteration_ns_of, iterations_within, job_duration_us
from frostline.traces.elastic_profile import Application, BatchPlan, cifar_resnet_levels, encoder_levels, profile_of
from frostline.traces.step_tables import MeasuredSteps, StepCurve


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def placements(gpus: int) -> list[Placement]:
    """One server, and two where there are GPUs for them."""
    apart = [Placement([(0, (1,)), (1, (gpus - 1,))])] if gpus > 1 else []
    return [Placement([(0, (gpus,))]), *apart]


@given(elastic_works())
def test_times_never_rise_with_the_level(work: Elastic) -> None:
    for gpus in work.widths:
        for where in PlacementClass:
            seconds = [work.seconds(gpus, where, level) for level in range(work.levels)]
            assert seconds == sorted(seconds, reverse=True)
            assert seconds[-1] > 0


@given(elastic_works(max_iterations=10**6), st.integers(1, 10**9))
def test_durations_are_those_of_the_iterations(work: Elastic, time_us: int) -> None:
    cluster = Cluster.uniform(2)
    job = Job(id="j", release_s=0, gpus=work.widths[0], work=work)
    for gpus in work.widths:
        for placement in placements(gpus):
            times = [iteration_ns_of(job, cluster, placement, level) for level in range(work.levels)]
            assert times == sorted(times, reverse=True)
            for level, ns in enumerate(times):
                duration_us = job_duration_us(job, cluster, placement, level)
                assert 0 <= 1000 * duration_us - work.iterations * ns < 1000
                done = iterations_within(job, cluster, placement, time_us, level)
                assert done * ns <= 1000 * time_us < (done + 1) * ns
                assert iterations_within(job, cluster, placement, duration_us, level) >= work.iterations
                assert iterations_within(job, cluster, placement, duration_us - 1, level) < work.iterations


@given(st.data(), elastic_works())
def test_round_trip(folder: Path, data: st.DataObject, work: Elastic) -> None:
    gpus = data.draw(st.sampled_from(work.widths))
    instance = Instance(cluster=Cluster.uniform(2), jobs=[Job(id="a", release_s=0, gpus=gpus, work=work)])
    save(instance, folder / "i.json")
    found = load_instance(folder / "i.json")
    assert found == instance
    assert digest(found) == digest(instance)
    # The order in which a table was given does not matter.
    turned = {
        where: {width: list(rows[width]) for width in reversed(list(rows))}
        for where, rows in reversed(list(work.seconds_per_iteration.items()))
    }
    again = replace(work, seconds_per_iteration=turned)
    assert digest(instance.replace(jobs=[instance.jobs[0].replace(work=again)])) == digest(instance)


@st.composite
def curves(draw: st.DrawFn) -> StepCurve:
    samples = sorted(draw(st.sets(st.integers(1, 64), min_size=2, max_size=5)))
    compute = np.array([draw(st.integers(1, 1000)) / 1000 for _ in samples])
    exchange = np.array([draw(st.integers(0, 2000)) / 1000 for _ in samples])
    return StepCurve(np.array(samples, float), compute, compute + exchange)


@given(
    st.dictionaries(st.sampled_from([(1, 1), (1, 2), (1, 4), (2, 2), (3, 4), (2, 8)]), curves(), min_size=1),
    st.dictionaries(st.integers(1, 256), st.integers(1, 100).map(lambda n: n / 100), min_size=1, max_size=3),
    st.sampled_from([cifar_resnet_levels, lambda: encoder_levels(6, 64, 32)]),
    st.sampled_from(["static", "rebuild"]),
)
def test_profiles_of_any_measurements(
    measured: dict[tuple[int, int], StepCurve],
    batches: dict[int, float],
    levels: object,
    comm: str,
) -> None:
    application = Application(name="a", network="n", family="cnn", gpu_hours=(0, 1), levels=levels)  # type: ignore[arg-type]
    steps = MeasuredSteps(measured)
    plan = BatchPlan(reference=min(batches), iterations=batches)
    try:
        profile = profile_of(application, steps, plan, gpu_type="T4", comm=comm)
    except ValueError as error:
        assert "has none that 'a' was measured on" in str(error)
        return
    assert 1 <= profile.gamma <= 10
    work = profile.work(1)
    assert work.levels == len(application.levels())  # type: ignore[misc]
    for where, rows in work.seconds_per_iteration.items():
        for gpus, row in rows.items():
            batch = profile.batches[where][gpus]
            curve = steps.curve(gpus, where)
            assert curve is not None
            assert batch in batches
            # All passes compute, at most all of them exchange.
            passes = math.ceil(math.ceil(batch / gpus) / min(curve.samples[-1], steps.samples[1]))
            assert row[0] <= batches[batch] * passes * curve.step_s.max() * (1 + 1e-9) + 1e-9
            assert row[0] >= batches[batch] * passes * curve.compute_s.min() * (1 - 1e-9) - 1e-9
            assert row[-1] >= 0.3 * batches[batch] * passes * curve.compute_s.min() - 1e-9


@given(st.lists(st.floats(0.01, 1), min_size=3, max_size=6), st.floats(0.01, 1), st.integers(10, 40))
def test_the_overlap_of_a_form_is_found(compute: list[float], exchange: float, tenths: int) -> None:
    gamma = tenths / 10
    seconds = np.array(sorted(compute))
    step = (seconds**gamma + exchange**gamma) ** (1 / gamma)
    steps = MeasuredSteps({(1, 2): StepCurve(np.arange(1.0, len(seconds) + 1), seconds, step)})
    _, error = steps.gamma()
    # The true one leaves the penalty only; the one that is chosen is no worse.
    assert error**2 <= 1e-3 * (gamma - 1) ** 2 + 1e-12
