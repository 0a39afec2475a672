"""Profiles from measured tables: what is read, how a step splits, which batch is taken, and workloads made of them."""

from __future__ import annotations

import gzip
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frostline.errors import FileError, InvalidValueError, UnknownNameError
from frostline.freezing.priors import debt_prior
from frostline.problem import Elastic, Fixed, Job, PlacementClass
from frostline.traces import (
    POLLUX_APPLICATIONS,
    TITAN_APPLICATIONS,
    Application,
    ElasticProfile,
    elastic_jobs,
    elastic_load,
    pollux_profile,
    pollux_profiles,
    read_trace,
    titan_profile,
    titan_profiles,
    tuned_widths,
)
from frostline.traces.elastic_profile import BatchPlan, cifar_resnet_levels, encoder_levels, profile_of
from frostline.traces.step_tables import read_steps, table_path

ONE, MANY = PlacementClass.ONE_SERVER, PlacementClass.MANY_SERVERS

PLACEMENTS = """placement,local_bsz,step_time,sync_time
1,4,0.2,0.0
1,8,0.3,0.0
2,4,0.25,0.05
2,8,0.35,0.05
11,4,0.5,0.3
11,8,0.6,0.3
13,4,0.7,0.5
22,4,0.9,0.7
"""
SCALABILITY = "num_nodes,num_replicas,local_bsz,step_time,sync_time\n6,24,4,1.2,1.0\n8,24,4,2.2,2.0\n"


def blocks() -> Any:
    """Levels of which the last one leaves about a third of the work."""
    return encoder_levels(4, 64, 16)


APPLICATION = Application(name="app", network="net", family="fine-tuning", gpu_hours=(0, 1), levels=blocks)
FIXED = BatchPlan(reference=8, iterations={8: 1.0})


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    (tmp_path / "placements.csv").write_text(PLACEMENTS)
    with gzip.open(tmp_path / "scalability.csv.gz", "wt") as file:
        file.write(SCALABILITY)
    return tmp_path


def profile(tables: Path, batches: BatchPlan = FIXED, **changes: Any) -> ElasticProfile:
    steps = read_steps(tables / "placements.csv", tables / "scalability.csv.gz")
    return profile_of(APPLICATION, steps, batches, **{"gpu_type": "T4", **changes})


class TestSteps:
    def test_curves(self, tables: Path) -> None:
        steps = read_steps(table_path(tables, "placements"), table_path(tables, "scalability"))
        assert sorted(steps.curves) == [(1, 1), (1, 2), (2, 2), (2, 4), (6, 24), (8, 24)]
        assert steps.samples == (4, 8)
        one = steps.curve(2, ONE)
        assert one is not None
        assert one.at(6) == pytest.approx((0.25, 0.3))
        assert (one.at(3), one.at(9)) == (None, None)

    def test_many_servers_are_as_few_as_were_measured_and_two_at_least(self, tables: Path) -> None:
        steps = read_steps(tables / "placements.csv", tables / "scalability.csv.gz")
        four, wide = steps.curve(4, MANY), steps.curve(24, MANY)
        assert four is not None
        assert wide is not None
        assert four.at(4) == pytest.approx((0.2, 0.8))  # the mean of 13 and 22
        assert wide.at(4) == pytest.approx((0.2, 1.2))
        assert (steps.curve(1, MANY), steps.curve(4, ONE), steps.curve(3, MANY)) == (None, None, None)

    def test_additive_steps_have_no_overlap(self, tables: Path) -> None:
        gamma, error = read_steps(tables / "placements.csv").gamma()
        assert (gamma, round(error, 9)) == (1.0, 0.0)

    def test_nothing_to_fit(self, tmp_path: Path) -> None:
        (tmp_path / "p.csv").write_text("placement,local_bsz,step_time,sync_time\n1,4,0.2,0.01\n")
        assert read_steps(tmp_path / "p.csv").gamma() == (1.0, 0.0)

    @pytest.mark.parametrize(
        ("row", "problem"),
        [
            ("10,4,0.2,0.0", "placement: '10' must be one digit above 0 per server"),
            (",4,0.2,0.0", "placement: '' must be one digit above 0 per server"),
            ("1,4.5,0.2,0.0", "local_bsz: '4.5' must be a whole number above 0"),
            ("1,0,0.2,0.0", "local_bsz: '0' must be a whole number above 0"),
            ("1,4,nan,0.0", "step_time: 'nan' must be a number from 0 to below 1e9"),
            ("1,4,1e400,0.0", "step_time: '1e400' must be a number from 0"),
            ("1,4,0,0.0", "step_time: '0' must be above 0"),
            ("1,4,x,0.0", "step_time: 'x' must be a number from 0"),
            ("1,4,0.2,-1", "sync_time: '-1' must be a number from 0"),
            ("1,4,0.2,0.3", "sync_time: '0.3' must be below step_time, 0.2"),
            ("1,4,0.2,0.2", "sync_time: '0.2' must be below step_time, 0.2"),
            ("1,4,0.2", "has 3 cells where the header has 4"),
        ],
    )
    def test_bad_rows(self, tmp_path: Path, row: str, problem: str) -> None:
        path = tmp_path / "p.csv"
        path.write_text(f"placement,local_bsz,step_time,sync_time\n2,4,0.2,0.1\n{row}\n")
        with pytest.raises(FileError) as error:
            read_steps(path)
        assert error.value.problem.startswith(f"line 3: {problem}")

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "is empty"),
            ("placement,local_bsz,step_time\n1,4,1\n", "must have one column 'sync_time'; it has placement, local_bsz"),
            ("placement,local_bsz,step_time,sync_time\n", "holds no row"),
            ("placement,local_bsz,step_time,sync_time\n1,4,2,1\n1,4,2,1\n", "line 3: repeats 1, 4"),
        ],
    )
    def test_bad_tables(self, tmp_path: Path, text: str, problem: str) -> None:
        (tmp_path / "p.csv").write_text(text)
        with pytest.raises(FileError) as error:
            read_steps(tmp_path / "p.csv")
        assert error.value.problem.startswith(problem)

    def test_fewer_replicas_than_servers(self, tables: Path) -> None:
        (tables / "s.csv").write_text("num_nodes,num_replicas,local_bsz,step_time,sync_time\n6,4,4,1,0\n")
        with pytest.raises(FileError, match="line 2: num_replicas: '4' must be at least num_nodes, 6"):
            read_steps(tables / "placements.csv", tables / "s.csv")


class TestProfile:
    def test_by_hand(self, tables: Path) -> None:
        made = profile(tables)
        levels = blocks()
        left = [levels.units.compute(k) / levels.units.compute(0) for k in levels.frozen_units]
        assert made.widths == (1, 2)
        assert made.template.compute_shares == levels.compute_shares
        # Batch 8 is 8 samples on one GPU, 4 on two; γ is 1, and the exchange stays.
        rows = made.template.seconds_per_iteration
        assert rows[ONE][1] == pytest.approx([0.3 * share for share in left], abs=1e-9)
        assert rows[ONE][2] == pytest.approx([0.2 * share + 0.05 for share in left], abs=1e-9)
        assert rows[MANY][2] == pytest.approx([0.2 * share + 0.3 for share in left], abs=1e-9)
        assert (made.batch_rule, made.gamma, made.iterations) == ("fixed", 1.0, None)
        assert left[-1] == pytest.approx(1 / 3, abs=0.01)

    def test_an_exchange_that_is_rebuilt_shrinks_with_the_parameters(self, tables: Path) -> None:
        levels = blocks()
        sent = levels.units.params(levels.frozen_units[-1]) / levels.units.params()
        left = levels.units.compute(levels.frozen_units[-1]) / levels.units.compute(0)
        row = profile(tables, comm="rebuild").template.seconds_per_iteration[MANY][2]
        assert row[0] == pytest.approx(0.5)
        assert row[-1] == pytest.approx(0.2 * left + 0.3 * sent, abs=1e-9)
        with pytest.raises(UnknownNameError, match="rebuild"):
            profile(tables, comm="rebuilt")

    def test_gradients_are_accumulated_where_a_share_does_not_fit(self, tables: Path) -> None:
        # 16 samples on one GPU are two passes of 8, the second of which exchanges.
        (tables / "placements.csv").write_text(PLACEMENTS.replace("1,8,0.3,0.0", "1,8,0.3,0.1"))
        made = profile(tables, BatchPlan(reference=16, iterations={16: 1.0}))
        assert made.best_s(1) == pytest.approx(0.2 + 0.3)
        assert made.best_s(2) == pytest.approx(0.35)

    def test_the_batch_of_the_highest_goodput(self, tables: Path) -> None:
        # On one GPU batch 8 takes 0.6 × 0.3 s against 0.2 s, on two 0.6 × 0.25 s; batch 4 leaves two GPUs too little.
        made = profile(tables, BatchPlan(reference=4, iterations={4: 1.0, 8: 0.6}))
        assert made.batches == {ONE: {1: 8, 2: 8}, MANY: {2: 8}}
        assert (made.best_s(1), made.best_s(2)) == pytest.approx((0.18, 0.15))
        assert made.batch_rule == "goodput"
        made = profile(tables, BatchPlan(reference=4, iterations={4: 1.0, 8: 0.8}))
        assert made.batches == {ONE: {1: 4, 2: 8}, MANY: {2: 8}}
        assert made.best_s(1) == pytest.approx(0.2)

    def test_without_levels(self, tables: Path) -> None:
        steps = read_steps(tables / "placements.csv")
        application = Application(name="a", network="n", family="mlp", gpu_hours=(0, 1))
        work = profile_of(application, steps, FIXED, gpu_type="T4").work(5)
        assert (work.levels, work.iterations, work.family) == (1, 5, "mlp")

    def test_what_cannot_be_made(self, tables: Path) -> None:
        with pytest.raises(InvalidValueError, match=r"widths=\(3, 5\) has none that 'app' was measured on"):
            profile(tables, widths=(3, 5))
        with pytest.raises(InvalidValueError, match=r"widths=0 must be at least 1"):
            profile(tables, widths=(0,))
        with pytest.raises(InvalidValueError, match="'app': iterations=None must be given"):
            profile(tables).work()
        with pytest.raises(InvalidValueError, match=r"gpu_hours=.* must be two rising numbers"):
            profile(tables).replace(gpu_hours=(2, 1))

    def test_levels_of_networks(self) -> None:
        for levels, count in ((encoder_levels(12, 768, 384), 9), (cifar_resnet_levels(), 9)):
            assert len(levels) == count
            assert levels.compute_shares[-1] == 1.0
            left = levels.units.compute(levels.frozen_units[-1]) / levels.units.compute(0)
            assert 0.33 < left < 0.35
        base = encoder_levels(12, 768, 512).units
        assert base.params() == pytest.approx(110e6, rel=0.02)
        assert cifar_resnet_levels().units.params() == pytest.approx(11.17e6, rel=0.01)


class TestPollux:
    @pytest.fixture
    def folder(self, tables: Path) -> Path:
        home = tables / "bert"
        home.mkdir()
        (tables / "placements.csv").rename(home / "placements.csv")
        (tables / "scalability.csv.gz").rename(home / "scalability.csv.gz")
        head = "progress,iteration,metric,grad_sqr,grad_var\n"
        (home / "validation-4.csv").write_text(head + "50,50,1,1,1\n100,100,2,1,1\n")
        (home / "validation-8.csv").write_text(head + "50,30,1,1,1\n100,60,2,1,1\n")
        return tables

    def test_by_hand(self, folder: Path) -> None:
        made = pollux_profile(folder, "bert")
        assert (made.iterations, made.reference_batch) == (100, 4)
        assert made.best_s(1) == pytest.approx(0.18)
        assert (made.gpu_type, made.network, made.template.family) == ("T4", "BERT-base", "fine-tuning")

    @pytest.mark.parametrize(
        ("name", "text", "problem"),
        [
            ("validation-8.csv", "progress,iteration\n50,40\n40,50\n", "line 3: progress: 40 must be at least 50"),
            ("validation-8.csv", "progress,iteration\n50,x\n", "line 2: iteration: 'x' must be a number above 0"),
            ("validation-8.csv", "progress,iteration\n0,0\n", "line 2: progress: '0' must be a number above 0"),
            ("validation-8.csv", "progress\n50\n", "must have one column 'iteration'"),
            ("validation-x.csv", "progress,iteration\n1,1\n", "is named for the batch 'x'"),
            ("validation-08.csv", "progress,iteration\n1,1\n", "is for the same batch as"),
        ],
    )
    def test_bad_runs(self, folder: Path, name: str, text: str, problem: str) -> None:
        (folder / "bert" / name).write_text(text)
        with pytest.raises(FileError) as error:
            pollux_profile(folder, "bert")
        assert error.value.problem.startswith(problem)

    def test_missing(self, folder: Path) -> None:
        for path in (folder / "bert").glob("validation*"):
            path.unlink()
        with pytest.raises(FileError, match=r"bert: has no table validation-BATCH.csv"):
            pollux_profile(folder, "bert")
        (folder / "bert" / "scalability.csv.gz").unlink()
        with pytest.raises(FileError, match=r"scalability.csv: is missing, and so is its .gz"):
            pollux_profile(folder, "bert")
        with pytest.raises(UnknownNameError, match="unknown application 'brt'; did you mean 'bert'"):
            pollux_profile(folder, "brt")

    def test_real_tables(self, shared: Path) -> None:
        made = pollux_profiles(shared / "data/traces/pollux-osdi21", widths=(1, 2, 4, 8, 16, 32))
        assert list(made) == list(POLLUX_APPLICATIONS)
        expected = {
            "cifar10": (39062, 128, 9),
            "ncf": (194174, 256, 1),
            "bert": (14774, 12, 9),
            "deepspeech2": (28536, 20, 1),
            "yolov3": (103444, 8, 1),
            "imagenet": (576525, 200, 9),
        }
        assert {p.name: (p.iterations, p.reference_batch, p.template.levels) for p in made.values()} == expected
        for one in made.values():
            assert one.widths == (1, 2, 4, 8, 16, 32)
            assert sorted(one.template.seconds_per_iteration[ONE]) == [1, 2, 4]
            assert sorted(one.template.seconds_per_iteration[MANY]) == [2, 4, 8, 16, 32]
            assert one.gamma_error < 0.1
            assert debt_prior(one.template.family)
        # One GPU holds 12 samples of BERT at most; the best batch on it is two passes of 12.
        assert made["bert"].batches[ONE][1] == 24
        alone = 0.9215156733989716 + (0.9215156733989716 - 0.013694751858)
        assert made["bert"].best_s(1) == pytest.approx(alone * 7427 / 14774.647 * 14774 / 14774, rel=1e-6)
        # A whole training of ResNet-50 on one T4 takes about 148 hours, and is in the class of 100 to 1,000.
        hours = {n: p.iterations * p.best_s(1) / 3600 for n, p in made.items() if p.iterations}
        assert hours["imagenet"] == pytest.approx(148, abs=1)
        assert hours["bert"] == pytest.approx(3.8, abs=0.1)

    def test_freezing_pays_less_where_gradients_are_exchanged(self, shared: Path) -> None:
        made = pollux_profile(shared / "data/traces/pollux-osdi21", "bert")
        ratio = [made.best_s(w, 8) / made.best_s(w) for w in (1, 8, 32)]
        assert ratio == sorted(ratio)
        assert ratio[0] < 0.36
        assert ratio[-1] > 0.8


class TestTitan:
    def test_real_tables(self, shared: Path) -> None:
        folder = shared / "data/traces/titan-socc22"
        made = {**titan_profiles(folder), **titan_profiles(folder, "A100", ["vit"])}
        assert list(made) == [*(f"{name}@V100" for name in TITAN_APPLICATIONS), "vit@A100"]
        for one in made.values():
            assert (one.template.levels, one.template.family, one.batch_rule) == (9, "fine-tuning", "fixed")
            assert (one.widths, one.iterations) == ((1, 2, 4, 8, 12, 16, 24, 32), None)
            assert one.best_s(1, 8) / one.best_s(1) == pytest.approx(1 / 3, abs=0.01)
        # 192 samples on one GPU were measured as they are.
        assert made["vit-large@V100"].best_s(1) == pytest.approx(1.1269, abs=1e-4)
        assert made["vit@A100"].best_s(1) == pytest.approx(0.3812, abs=1e-4)

    def test_another_batch(self, shared: Path) -> None:
        folder = shared / "data/traces/titan-socc22"
        small = titan_profile(folder, "vit-large", batch=4)
        assert small.widths == (1,)
        assert small.best_s(1) == pytest.approx(0.09270235, abs=1e-6)
        with pytest.raises(InvalidValueError, match="has none that 'vit-large' was measured on"):
            titan_profile(folder, "vit-large", batch=1)
        with pytest.raises(UnknownNameError, match="unknown GPU type of Titan 'T4'"):
            titan_profile(folder, "vit-large", "T4")
        with pytest.raises(UnknownNameError, match="unknown model 'vit-larg'; did you mean 'vit-large'"):
            titan_profile(folder, "vit-larg")


def made_profile(name: str, hours: tuple[float, float], step_s: float, **changes: Any) -> ElasticProfile:
    table = {
        "one_server": {w: (step_s / w, step_s / w / 2) for w in (1, 2, 4)},
        "many_servers": {8: (step_s / 4, step_s / 4)},
    }
    template = Elastic(iterations=1, widths=(1, 2, 4, 8), seconds_per_iteration=table, compute_shares=(0, 1))
    fields: dict[str, Any] = {"gpu_type": "T4", "network": "n", "reference_batch": 8, "batches": {}}
    return ElasticProfile(name=name, template=template, gpu_hours=hours, **fields | changes)


SMALL = made_profile("small", (0, 1), 0.01, iterations=5000)
OTHER = made_profile("other", (0, 1), 0.02, iterations=9000)
LARGE = made_profile("large", (1, 10), 0.5, iterations=20000)
PROFILES = [SMALL, OTHER, LARGE]


def trace(hours: float = 3.0) -> list[Job]:
    """Three days of jobs, one every ten minutes, of 2 minutes or 3 hours, one too short and one too large."""
    jobs = [
        Job(id=str(i), release_s=600.0 * i, gpus=(1, 3, 16)[i % 3], work=Fixed(duration_s=(120.0, 3 * 3600.0)[i % 2]))
        for i in range(432)
    ]
    odd = Job(id="short", release_s=hours * 3600, gpus=1, work=Fixed(duration_s=59.0))
    return [*jobs, odd, odd.replace(id="huge", work=Fixed(duration_s=3.6e6))]


class TestWorkload:
    @pytest.mark.parametrize("scale", ["durations", "releases"])
    @pytest.mark.parametrize("sizes", ["trace", "application"])
    @pytest.mark.parametrize("requests", ["trace", "tuned"])
    @pytest.mark.parametrize("drawn", [False, True])
    def test_load(self, scale: Any, sizes: Any, requests: Any, drawn: bool) -> None:
        options: dict[str, Any] = {"gpus": 16, "profiles": PROFILES, "load": 0.8}
        options |= {"scale": scale, "sizes": sizes, "requests": requests, "arrivals": trace() if drawn else None}
        jobs = elastic_jobs(60, seed=3, **options)
        assert elastic_load(jobs, 16) == pytest.approx(0.8, rel=1e-9 if scale == "releases" else 1e-3)
        assert jobs == elastic_jobs(60, seed=3, **options)
        assert jobs != elastic_jobs(60, seed=4, **options)
        assert [job.id for job in jobs] == [str(i) for i in range(1, 61)]
        releases = [job.release_s for job in jobs]
        assert releases[0] == 0.0
        assert releases == sorted(releases)
        for job in jobs:
            assert isinstance(job.work, Elastic)
            assert (job.work.quality_budget_points, job.work.warm_up) == (0.5, 0.2)
            assert job.gpus in job.work.widths

    def test_gpu_time_decides_the_application_and_the_work(self) -> None:
        jobs = elastic_jobs(100, seed=1, gpus=16, profiles=PROFILES, arrivals=trace(), scale="releases")
        # Jobs of 2 minutes and 1 to 16 GPUs are below an hour; those of 3 hours are 3, 9 or 48 hours, all above.
        names = Counter(job.name for job in jobs)
        assert set(names) == {"small", "other", "large"}
        sizes = set()
        for job in jobs:
            assert isinstance(job.work, Elastic)
            sizes.add((job.name == "large", round(job.gpus * job.work.iterations * job.work.seconds(job.gpus, ONE))))
        assert sizes == {(False, s) for s in (120, 360, 1920)} | {(True, 3600 * h) for h in (3, 9, 48)}

    def test_requests_are_those_of_the_trace_as_far_as_there_are_widths(self) -> None:
        jobs = elastic_jobs(100, seed=1, gpus=16, profiles=PROFILES, arrivals=trace())
        assert {job.gpus for job in jobs} == {1, 2, 8}
        jobs = elastic_jobs(100, seed=1, gpus=4, profiles=PROFILES, arrivals=trace())
        assert {job.gpus for job in jobs} == {1, 2, 4}

    def test_tuned_requests(self) -> None:
        assert tuned_widths(SMALL, 16) == (1,)  # all in one server are perfect, 8 reach exactly half
        good = made_profile("good", (0, 1), 0.01)
        table = {"one_server": {1: (1.0,), 2: (0.7,), 4: (0.4,), 8: (0.3,)}}
        work = Elastic(iterations=1, widths=(1, 2, 4, 8), seconds_per_iteration=table)
        good = good.replace(template=work)
        assert (tuned_widths(good, 16), tuned_widths(good, 2)) == ((2, 4), (2,))
        jobs = elastic_jobs(60, seed=1, gpus=16, profiles={"good": good}, requests="tuned")
        assert {job.gpus for job in jobs} == {2, 4}

    def test_whole_trainings(self) -> None:
        jobs = elastic_jobs(60, seed=1, gpus=16, profiles=PROFILES, sizes="application", scale="releases")
        known = {profile.name: profile.iterations for profile in PROFILES}
        assert all(isinstance(job.work, Elastic) and job.work.iterations == known[job.name] for job in jobs)

    def test_the_nearest_class_takes_what_no_class_holds(self) -> None:
        jobs = elastic_jobs(60, seed=1, gpus=16, profiles=[LARGE], arrivals=trace())
        assert {job.name for job in jobs} == {"large"}

    def test_jobs_are_drawn_from_hours_of_the_day(self) -> None:
        jobs = elastic_jobs(72, seed=1, gpus=16, profiles=PROFILES, arrivals=trace(), hours=(5, 9))
        assert jobs[-1].release_s == 4 * 3600 - 600  # the 72 of these hours on three days
        assert Counter(Counter(job.release_s for job in jobs).values()) == {3: 24}
        with pytest.raises(InvalidValueError, match=r"arrivals=72 must hold 73 jobs .* from hour 5 to 9"):
            elastic_jobs(73, seed=1, gpus=16, profiles=PROFILES, arrivals=trace(), hours=(5, 9))

    def test_too_short_and_too_large_jobs_are_left_out(self) -> None:
        found = elastic_jobs(144, seed=1, gpus=16, profiles=PROFILES, arrivals=trace(), hours=(2, 10))
        assert len(found) == 144  # 48 a day; neither of the two odd ones makes it 145
        with pytest.raises(InvalidValueError, match="arrivals=144"):
            elastic_jobs(145, seed=1, gpus=16, profiles=PROFILES, arrivals=trace(), hours=(2, 10))

    def test_one_job(self) -> None:
        (job,) = elastic_jobs(1, seed=5, gpus=16, profiles=PROFILES)
        assert job.release_s == 0.0
        assert elastic_load([job], 16) is None

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"count": 0}, "count=0 must be at least 1"),
            ({"load": 0}, "load=0 must be at least 1e-06"),
            ({"gpus": 0}, "gpus=0 must be at least 1"),
            ({"seed": -1}, "seed=-1 must be at least 0"),
            ({"profiles": []}, "must be at least one"),
            ({"quality_budget_points": -0.5}, "quality_budget_points=-0.5 must be at least 0"),
            (
                {"profiles": [made_profile("a", (0, 1), 1.0)], "sizes": "application"},
                "'a': iterations=None must be given",
            ),
            ({"scale": "both"}, "unknown choice of scale 'both'"),
            ({"sizes": "own"}, "unknown choice of sizes 'own'"),
            ({"requests": "few"}, "unknown choice of requests 'few'"),
            ({"hours": (3, 30), "arrivals": trace()}, "hours=30 must be at most 24"),
        ],
    )
    def test_refused(self, changes: dict[str, Any], message: str) -> None:
        arguments = {"count": 5, "seed": 1, "gpus": 16, "profiles": PROFILES} | changes
        with pytest.raises((InvalidValueError, UnknownNameError), match=message):
            elastic_jobs(arguments.pop("count"), **arguments)

    def test_a_profile_wider_than_the_cluster(self) -> None:
        wide = Elastic(iterations=1, widths=(4,), seconds_per_iteration={"one_server": {4: [1.0]}})
        with pytest.raises(InvalidValueError, match="profiles='w' must offer a width of at most 2 GPUs"):
            elastic_jobs(5, seed=1, gpus=2, profiles=[made_profile("w", (0, 1), 1.0).replace(template=wide)])

    def test_only_elastic_work_has_this_load(self) -> None:
        with pytest.raises(InvalidValueError, match="work='Fixed' must be Elastic"):
            elastic_load([Job(id="a", release_s=0, gpus=1, work=Fixed(duration_s=1))], 4)

    def test_philly_as_pollux_samples_it(self, shared: Path) -> None:
        folder = shared / "data/traces"
        philly = read_trace(folder / "philly-2017/philly.csv.gz", rebase=False).jobs
        profiles = pollux_profiles(folder / "pollux-osdi21")
        jobs = elastic_jobs(1000, seed=1, gpus=64, profiles=profiles, arrivals=philly, load=1.0)
        assert elastic_load(jobs, 64) == pytest.approx(1.0, rel=1e-3)
        assert jobs[-1].release_s < 8 * 3600
        share = {name: n / 1000 for name, n in Counter(job.name for job in jobs).items()}
        # From 2 to 10 o'clock 78 % of them take less than an hour of GPU-time, 15 % less than 10 hours.
        small = share["cifar10"] + share["ncf"]
        medium = share["bert"] + share["deepspeech2"]
        assert (small, medium) == pytest.approx((0.783, 0.153), abs=0.03)
        assert share["cifar10"] / small == pytest.approx(0.5, abs=0.06)
        assert share["yolov3"] > share["imagenet"] > 0
        assert np.mean([job.gpus == 1 for job in jobs]) > 0.85
        assert all(math.isfinite(job.release_s) for job in jobs)
