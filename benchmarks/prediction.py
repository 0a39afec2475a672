"""How well models of job sizes predict, what a leak would show, and how long predicting takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import process_time

import numpy as np
from bare_heap import bare_heap_s
from public_traces import eagle, hashes, itp_pooled, philly

from frostline.prediction import Finished, OnlinePredictor, Scores, make_model, replay, size_of
from frostline.prediction.scores import DISTORTION_SHARES
from frostline.problem import Job
from frostline.traces import generate_recurring_jobs, take

_BASELINES = ("last-finished", "median", "global-median")
_CHEAP = (*_BASELINES, "ewma", "survival", "combined")
_MODELS = (*_CHEAP, "forest")
_FOREST_JOBS = 10_000
_GPUS = 512
_BATCHES = 5


@dataclass(frozen=True, kw_only=True)
class Case:
    """Jobs to replay, when they started as far as that is known, and what tells groups of them apart."""

    name: str
    jobs: Sequence[Job]
    start_s: Mapping[str, float] = field(default_factory=dict)
    key: Callable[[Job], object] = lambda job: (job.group, job.gpus)

    def first(self, count: int) -> Case:
        """The same with only the first jobs."""
        return Case(name=f"{self.name}, first", jobs=take(self.jobs, count), start_s=self.start_s, key=self.key)

    def ends_s(self, job: Job) -> float:
        """When a job finishes."""
        return self.start_s.get(job.id, job.release_s) + size_of(job)


def prediction(quick: bool) -> None:
    """Replays of models on traces, and the previous job submitted as a leak."""
    public = list(_public(quick))
    print("median |ln(predicted / actual)|, share within 2×; jobs predicted at their submission, from finished ones\n")
    head = ["jobs", *_MODELS, f"combined against the best of {', '.join(_BASELINES)}"]
    print(f"| trace | {' | '.join(head)} |\n|{'---|' * (len(head) + 1)}")
    scores = {case.name: _score(case) for case in _cases(public, quick)}
    print(
        "\nD = b / a, where so many of the ratios predicted / actual lie from a to b; coverage of [low, high], aim 80 %"
    )
    print("\n| trace | model | coverage | cold start | D of 80 % | D of 90 % | D of 98 % | D of all |")
    print("|---|---|---|---|---|---|---|---|")
    for name, found in scores.items():
        _spread(name, found)
    print("\nthe previous job of a group that was submitted, which mostly still runs, as if its size were known\n")
    print("| trace | jobs with a previous one | median abs(ln ratio) | previous one not finished |\n|---|---|---|---|")
    for case in public:
        _peek(case)
    print(f"\ntraces: {hashes()}")


def _public(quick: bool) -> Iterator[Case]:
    trace = eagle()
    cases = (
        Case(name="Eagle", jobs=trace.jobs, start_s=trace.start_s, key=lambda job: (job.user, job.name, job.gpus)),
        Case(name="Philly", jobs=philly()),
        Case(name="ITP, pooled", jobs=itp_pooled()),
    )
    for case in cases:
        yield case.first(300) if quick else case


def _cases(public: Iterable[Case], quick: bool) -> Iterator[Case]:
    """Cases of the table; large ones also cut to what the forest gets through in half a minute."""
    for case in public:
        yield case
        if case.name == "Eagle":
            yield _without_largest_group(case)
        if len(case.jobs) > _FOREST_JOBS:
            yield case.first(_FOREST_JOBS)
    for seed in (1, 2):
        jobs = generate_recurring_jobs(300 if quick else 5_000, seed=seed, gpus=_GPUS)
        yield Case(name=f"generated, seed {seed}", jobs=jobs)


def _without_largest_group(case: Case) -> Case:
    """The same without the jobs of the group that has most."""
    keys = list(map(case.key, case.jobs))
    largest = max(dict.fromkeys(keys), key=keys.count)
    jobs = [job for job, key in zip(case.jobs, keys, strict=True) if key != largest]
    return Case(name=f"{case.name}, without its array of {len(keys) - len(jobs)}", jobs=jobs, start_s=case.start_s)


def _score(case: Case) -> Mapping[str, Scores]:
    models = _MODELS if len(case.jobs) <= _FOREST_JOBS else _CHEAP
    scores = {result.model: result.scores for result in replay(case.jobs, models, start_s=case.start_s)}
    cells = [_cell(scores.get(model)) for model in _MODELS]
    print(f"| {case.name} | {len(case.jobs):,} | {' | '.join(cells)} | {_verdict(scores)} |", flush=True)
    return scores


def _cell(scores: Scores | None) -> str:
    return "–" if scores is None else f"{scores.median_abs_log_ratio:.4f}, {100 * scores.share_within_2x:.1f} %"


def _spread(name: str, scores: Mapping[str, Scores]) -> None:
    for model in ("combined", "last-finished", "global-median"):
        found = scores[model]
        bounds = " | ".join(f"{found.distortion[share].D:,.3g}" for share in reversed(DISTORTION_SHARES))
        cold = f"{100 * found.cold_start_share:.1f} %"
        print(f"| {name} | {model} | {100 * found.coverage:.1f} % | {cold} | {bounds} |")


def _verdict(scores: Mapping[str, Scores]) -> str:
    """Whether the combination errs no more than the best of the simple models."""
    best = min(scores[model].median_abs_log_ratio for model in _BASELINES)
    ours = scores["combined"].median_abs_log_ratio
    if ours == best:
        return "equal"
    return (
        f"better, {100 * (1 - ours / best):.1f} % less"
        if ours < best
        else f"WORSE, {100 * (ours / best - 1):.1f} % more"
    )


def _peek(case: Case) -> None:
    previous: dict[object, Job] = {}
    errors, unfinished = [], 0
    for job in case.jobs:
        before = previous.get(case.key(job))
        if before is not None:
            errors.append(abs(np.log(size_of(before) / size_of(job))))
            unfinished += case.ends_s(before) > job.release_s
        previous[case.key(job)] = job
    share = 100 * unfinished / max(len(errors), 1)
    print(f"| {case.name} | {len(errors):,} | {np.median(errors or [np.nan]):.3f} | {share:.0f} % |")


def prediction_speed(quick: bool) -> None:
    """CPU time of the scheduler's questions, and of a fit, on generated jobs with names."""
    batch, history = (300, 400) if quick else (10_000, 100_000)
    jobs = generate_recurring_jobs(history + (_BATCHES + 1) * batch, seed=3, gpus=_GPUS)
    past, new = jobs[:history], jobs[history:]
    bare_s = bare_heap_s(new, _GPUS) / len(new)
    print(f"{history:,} jobs finished, batches of {batch:,}; a bare heap loop takes {1e6 * bare_s:.2f} µs a job\n")
    print("| model | batch, µs a job: fastest, median | fastest × bare heap | single, ms: median, slowest |")
    print("|---|---|---|---|")
    for model in ("combined", "forest"):
        predictor = _taught(model, past)
        now_s = new[-1].release_s
        batch_s = [_cpu_s(predictor.predict, part, now_s) / batch for part in _parts(new, batch)[:_BATCHES]]
        single_s = [_cpu_s(predictor.predict, [job], now_s) for job in new[_BATCHES * batch :][:200]]
        print(
            f"| {model} | {1e6 * min(batch_s):.1f}, {1e6 * np.median(batch_s):.1f} | {min(batch_s) / bare_s:.1f} "
            f"| {1e3 * np.median(single_s):.2f}, {1e3 * max(single_s):.2f} |",
            flush=True,
        )
    print(f"\nforest: a fit to {history:,} jobs {_fit_s(past):.1f} s")


def _parts(jobs: Sequence[Job], size: int) -> list[Sequence[Job]]:
    return [jobs[first : first + size] for first in range(0, len(jobs), size)]


def _taught(model: str, jobs: Sequence[Job]) -> OnlinePredictor:
    """Predictor that was asked about all these jobs, and told of their ends, part by part."""
    predictor = OnlinePredictor(model)
    for part in _parts(jobs, 1000):
        now_s = part[-1].release_s
        predictor.predict(part, now_s)
        for job in part:
            predictor.finish(job.id, size_of(job), now_s, job.status)
    return predictor


def _fit_s(jobs: Sequence[Job]) -> float:
    """CPU time of the one fit of a forest that learns from all jobs."""
    model = make_model(f"forest:first_fit={len(jobs)}:window={len(jobs)}")
    for part in _parts(jobs, 1000):
        model.predict(part, part[-1].release_s)
    *most, last = (Finished(job, size_of(job), jobs[-1].release_s, job.status) for job in jobs)
    model.learn(most, jobs[-1].release_s)
    assert model.fits == 0
    time_s = _cpu_s(model.learn, [last], jobs[-1].release_s)
    assert model.fits == 1
    return time_s


def _cpu_s(call: Callable[..., object], *arguments: object) -> float:
    begin = process_time()
    call(*arguments)
    return process_time() - begin
