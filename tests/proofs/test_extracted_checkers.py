"""The checkers that are extracted from the Coq proofs, against those that frostline has: the same verdicts.

Certificates and schedules are drawn from a seed: good ones, as solvers and policies make them, trees put together at
random, and what is left of both after a change at a random place. For the bound that a certificate of a sum reaches the
answer must turn from yes to no at exactly the same number.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, pairwise
from random import Random
from typing import Any

import pytest

from frostline.certify import check_certificate
from frostline.policies import make_policy
from frostline.problem import Cluster, Fixed, Instance, Job, Placement, Schedule, Server
from frostline.relaxation import bound_certificate, lower_bound
from frostline.relaxation.lagrangian import PriceProblem, best_prices, certificate_of, prove, prove_last
from frostline.simulation import run
from frostline.verify import check_schedule

Document = dict[str, Any]
Ask = Callable[[Iterable[str]], list[str]]

pytestmark = pytest.mark.proofs


# ---------- a certificate as a question ----------


def question(document: Document) -> str:
    """A certificate as the extracted checker reads it: numbers apart by blanks, and all times from 0 on."""
    problem, bound = document["problem"], document["bound"]
    last, count = problem["weight"] == "last", len(problem["ids"])
    weight = [1] * count if last or problem["weight"] is None else problem["weight"]
    later = _shift(document, 1 if last else sum(weight))
    first = [0, *accumulate(problem["options"] or [1] * count)]
    penalty = problem["penalty"] or [0] * first[-1]
    words: list[Any] = ["last" if last else "certificate", problem["gpus"]]
    words += [bound + later * (1 if last else sum(weight)), count]
    for j, (low, high) in enumerate(pairwise(first)):
        words += [problem["release"][j] + later, weight[j], high - low]
        for option in range(low, high):
            words += [problem["width"][option], problem["duration"][option], penalty[option]]
    proof = document["proof"]
    words += [proof] if isinstance(proof, str) else [word for node in proof for word in _node(node, later)]
    return " ".join(map(str, words))


def _shift(document: Document, per_tick: int) -> int:
    """By how much all times must grow so that no number is below 0."""
    problem, bound, times = document["problem"], document["bound"], [0, *document["problem"]["release"]]
    for node in document["proof"] if isinstance(document["proof"], list) else []:
        if isinstance(node, list):
            times.append(node[1])
        elif isinstance(node, dict):
            times += [*node["times"], *(at for row in node.get("windows", []) for at in row[1:] if at is not None)]
    if problem["weight"] == "last":
        times.append(bound - 1 - max(problem["duration"], default=0))
    return max(-min(times), -(bound // per_tick) if per_tick else 0)


def _node(node: Any, later: int) -> Iterator[Any]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, list):
        yield from ("split", node[0], node[1] + later)
    else:
        windows = {row[0]: row[1:] for row in node.get("windows", [])}  # of two for one job the latter counts
        if "windows" in node:
            yield from ("narrow", len(windows))
            for j, (low, high) in windows.items():
                yield from (j, low + later, "-" if high is None else high + later)
        else:
            yield "leaf"
        yield from (node["by"], node["denominator"], len(node["times"]), *(at + later for at in node["times"]))
        yield from (price for row in node["prices"] for price in row)


def signed(document: Document, **changes: Any) -> Document:
    """The document with changes, and the digest that belongs to it."""
    content = {name: value for name, value in document.items() if name != "sha256"} | changes
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return {**content, "sha256": hashlib.sha256(text.encode()).hexdigest()}


# ---------- certificates ----------


def random_problem(rng: Random) -> PriceProblem:
    gpus, most = rng.randint(1, 6), rng.choice([1, 1, 2, 3])
    jobs = []
    for _ in range(rng.randint(1, 5)):
        options = [
            (rng.randint(1, gpus), rng.randint(0 if rng.random() < 0.1 else 1, 7), rng.randint(0, 4) if most > 1 else 0)
            for _ in range(rng.randint(1, most))
        ]
        jobs.append((rng.randint(-3, 10), options))
    weights = [rng.randint(1, 4) if most > 1 else 1 for _ in jobs]
    return PriceProblem.of_rows(gpus, jobs, weights)


def random_leaf(rng: Random, problem: Document) -> Document:
    """Any prices at any breakpoints."""
    times = sorted(rng.sample(range(-2, 24), rng.randint(2, 8)))
    by = rng.choice(["gpu", "width", "option"])
    rows = {"gpu": 1, "width": len(set(problem["width"])), "option": len(problem["width"])}[by]
    prices = [[rng.choice([0, rng.randint(1, 9), rng.randint(9, 60)]) for _ in times[1:]] for _ in range(rows)]
    return {"by": by, "denominator": rng.randint(1, 4), "times": times, "prices": prices}


def random_tree(rng: Random, problem: Document, windows: dict[int, tuple[int, float]], depth: int) -> list[Any]:
    """Splits and windows at random, and leaves that are empty where they have to be."""
    if any(low > high for low, high in windows.values()):
        return ["empty"]
    shape = rng.random() if depth else 1.0
    j = rng.randrange(len(problem["ids"]))
    low, high = windows.get(j, (problem["release"][j], float("inf")))
    if shape < 0.5:
        at = low + rng.randint(-1, 6)
        by = random_tree(rng, problem, windows | {j: (low, min(high, at))}, depth - 1)
        return [[j, at], *by, *random_tree(rng, problem, windows | {j: (max(low, at + 1), high)}, depth - 1)]
    if shape < 0.85:
        first = low + rng.randint(-1, 5)
        last = rng.choice([None, first + rng.randint(-2, 4), first - 1])
        inside = windows | {j: (first, float("inf") if last is None else last)}
        leaf = {**random_leaf(rng, problem), "windows": [[j, first, last]]}
        return [leaf, *random_tree(rng, problem, inside, depth - 1)]
    return [random_leaf(rng, problem)]


def best_tree(problem: PriceProblem, *, last: bool = False) -> Document:
    """Proof of the largest value that a short search proves."""
    search = prove_last if last else prove
    if last:
        least = int((problem.release + problem.duration).max())
    else:
        least = best_prices(problem, prices="job", iterations=60).best.bound
    complete = None
    for tree in (search(problem, target, most_nodes=25) for target in range(least, least + 40)):
        if not tree.complete:
            break
        complete = tree
    assert complete is not None
    return certificate_of(problem, complete)


def random_instance(rng: Random, most_jobs: int = 8) -> Instance:
    servers = [Server(id=f"s{m}", gpus=rng.randint(1, 4)) for m in range(rng.randint(1, 3))]
    cluster = Cluster(servers=servers)
    jobs = []
    for i in range(rng.randint(1, most_jobs)):
        locality = rng.choice(["any", "server", "fewest"])
        gpus = rng.randint(1, cluster.largest if locality == "server" else cluster.gpus)
        work = Fixed(duration_s=rng.randint(1, 9))
        jobs.append(Job(id=f"J{i}", release_s=rng.randint(0, 9), work=work, gpus=gpus, locality=locality))
    return Instance(cluster=cluster, jobs=jobs)


def base_certificates(rng: Random) -> Iterator[tuple[str, Document]]:
    """Certificates of every origin."""
    for _ in range(400):
        stated = random_problem(rng).document
        proof = random_tree(rng, stated, {}, rng.randint(0, 3))
        content = {"format": "frostline/certificate", "version": 1, "problem": stated, "bound": 0, "proof": proof}
        yield "random", signed(content)
    for kind in ("pool", "width", "job") * 5:
        problem = random_problem(rng)
        yield "prices", certificate_of(problem, best_prices(problem, prices=kind, iterations=30).best)
    for _ in range(12):
        yield "tree", best_tree(random_problem(rng))
    for _ in range(10):
        rows = random_problem(rng).document
        width, duration = rows["width"][: len(rows["ids"])], rows["duration"][: len(rows["ids"])]
        jobs = zip(rows["release"], width, duration, strict=True)
        yield "last", best_tree(PriceProblem.of_rows(rows["gpus"], [(r, [(g, p, 0)]) for r, g, p in jobs]), last=True)
    for method in ("pointwise", "one-shot", "lagrangian", "best") * 5:
        instance = random_instance(rng, 5)
        yield "instance", bound_certificate(instance, lower_bound(instance, method))


def reached(document: Document) -> int | None:
    """The largest bound that ``frostline.certify`` accepts for a sum; None where any is accepted."""
    report = check_certificate(signed(document, bound=10**9))
    if report.valid:
        return None
    found = re.search(r"reaches a bound of (-?\d+) ticks", report.faults[-1].text)
    assert found is not None, report
    return int(found[1])


def around(document: Document) -> Iterator[tuple[str, Document]]:
    """The certificate, and those of the bounds at which it must begin to be refused."""
    yield "as it is", document
    if document["problem"]["weight"] != "last":
        most = reached(document)
        if most is not None:
            yield "tight", signed(document, bound=most)
            yield "tight", signed(document, bound=most + 1)
    else:
        yield "more", signed(document, bound=document["bound"] + 1)


def spoilt(rng: Random, document: Document) -> Document:
    """The certificate after a change or two."""
    document = copy.deepcopy(document)
    for _ in range(rng.choice([1, 1, 2])):
        rng.choice([_spoil_problem, _spoil_proof, _spoil_proof, _spoil_bound])(rng, document)
    return signed(document)


def _spoil_bound(rng: Random, document: Document) -> None:
    document["bound"] += rng.choice([-2, -1, 1, 2])


def _spoil_problem(rng: Random, document: Document) -> None:
    problem = document["problem"]
    columns = ["release", "width", "duration"]
    columns += [name for name in ("weight", "penalty") if isinstance(problem[name], list)]
    what = rng.choice(["gpus", *columns])
    if what == "gpus":
        problem["gpus"] += rng.choice([-1, 1])
    else:
        column = problem[what]
        column[rng.randrange(len(column))] += rng.choice([-1, 1])


def _spoil_proof(rng: Random, document: Document) -> None:
    nodes = document["proof"]
    if isinstance(nodes, str) or not nodes or rng.random() < 0.03:
        document["proof"] = "pointwise"
        return
    i = rng.randrange(len(nodes))
    if isinstance(nodes[i], list):
        nodes[i][rng.randrange(2)] += rng.choice([-2, -1, 1, 2])
    elif isinstance(nodes[i], dict):
        spoil = rng.choice([_spoil_price, _spoil_price, _spoil_times, _spoil_windows])
        spoil(rng, nodes[i], len(document["problem"]["ids"]))
    if rng.random() < 0.2:
        rng.choice([nodes.pop, lambda k: nodes.insert(k, "empty"), lambda k: nodes.insert(0, nodes.pop(k))])(i)


def _spoil_price(rng: Random, leaf: Document, jobs: int) -> None:
    row = rng.choice(leaf["prices"])
    k, step = rng.randrange(len(row)), max(leaf["denominator"] // 3, 1)
    row[k] = rng.choice([row[k] + step, row[k] - step, 0, row[k] * 2])


def _spoil_times(rng: Random, leaf: Document, jobs: int) -> None:
    if rng.random() < 0.3:
        leaf["denominator"] = max(leaf["denominator"] + rng.choice([-1, 1]) * max(leaf["denominator"] // 4, 1), 0)
    else:
        leaf["times"][rng.randrange(len(leaf["times"]))] += rng.choice([-1, 1])


def _spoil_windows(rng: Random, leaf: Document, jobs: int) -> None:
    windows = leaf.get("windows")
    if windows is None or rng.random() < 0.2:
        row = [rng.randrange(jobs), rng.randint(0, 5), rng.choice([None, rng.randint(0, 9)])]
        leaf["windows"] = [*(windows or []), row]
    elif windows:
        row = rng.choice(windows)
        row[1] += rng.choice([-1, 0, 1])
        row[2] = rng.choice([None, row[1] + rng.randint(-1, 5) if row[2] is None else row[2] + rng.choice([-1, 1])])


def test_verdicts_on_certificates_are_those_of_the_extracted_checker(answers: Ask) -> None:
    rng = Random(20261130)
    drawn = [
        (f"{origin}, {how}", document)
        for origin, base in base_certificates(rng)
        for how, document in [*around(base), *(("spoilt", spoilt(rng, base)) for _ in range(6))]
    ]
    seen: Counter[tuple[str, bool]] = Counter()
    for (kind, document), answer in zip(drawn, answers(question(document) for _, document in drawn), strict=True):
        report = check_certificate(document)
        assert (answer == "yes") == report.valid, (kind, answer, report, document)
        known = answer in ("yes", "no") or report.faults[0].kind in ("malformed", "negative_price")
        assert known, (kind, answer, report)
        seen[kind, report.valid] += 1
    assert len(drawn) >= 3000
    for origin in ("random", "prices", "tree", "last", "instance"):
        assert min(seen[f"{origin}, spoilt", True], seen[f"{origin}, spoilt", False]) >= 10, seen
        assert seen[f"{origin}, as it is", True] >= (1 if origin == "random" else 10), seen


# ---------- schedules ----------


def schedule_question(instance: Instance, schedule: Schedule) -> str:
    """A schedule of fixed jobs without interruptions as the extracted checker reads it, in microseconds."""
    cluster = instance.cluster
    place = {job.id: i for i, job in enumerate(instance.jobs)}
    words: list[Any] = ["schedule", len(cluster.servers), *cluster.capacities, len(instance.jobs)]
    for job in instance.jobs:
        allowed = {"any": len(cluster.servers), "server": 1, "fewest": cluster.servers_needed(job.gpus)}[job.locality]
        words += [int(job.release_s) * 10**6, job.gpus, int(job.work.duration_s) * 10**6, allowed]  # type: ignore[union-attr]
    words.append(len(schedule.segments))
    for segment in schedule.segments:
        loads = segment.placement.loads
        words += [place.get(segment.job, len(place)), segment.start_us, segment.end_us, len(loads)]
        words += [number for load in loads for number in load]
    return " ".join(map(str, words))


def spoilt_schedule(rng: Random, schedule: Schedule, servers: int) -> Schedule:
    """The schedule after a change at a random place."""
    segments = list(schedule.segments)
    i = rng.randrange(len(segments))
    shift, tick = rng.randint(-4, 4) * 10**6, rng.choice([-1, 1])
    one = segments[i]
    loads = dict(one.placement.loads)
    server = rng.randrange(servers + 1)
    segments[i : i + 1] = rng.choice(
        [
            lambda: [one._replace(start_us=one.start_us + shift, end_us=one.end_us + shift)],
            lambda: [one._replace(start_us=one.start_us + shift, end_us=one.end_us + shift)],
            lambda: [one._replace(start_us=one.start_us + tick, end_us=one.end_us + tick)],
            lambda: [one._replace(end_us=one.end_us + tick)],
            lambda: [one._replace(placement=Placement([(server, (sum(loads.values()),))]))],
            lambda: [one._replace(placement=Placement([(m, (k,)) for m, k in (loads | {server: 1}).items()]))],
            list,
            lambda: [one, one],
            lambda: [one._replace(job="nobody")],
        ]
    )()
    return Schedule(segments=[segment for segment in segments if segment.start_us >= 0])


def test_verdicts_on_schedules_are_those_of_the_extracted_checker(answers: Ask) -> None:
    rng = Random(30112026)
    names = ["fifo", "sjf", "easy", "ljf", "smallest-area", "asrpt", "asrpt-strict"]
    drawn: list[tuple[Instance, Schedule]] = []
    for name in names * 6:
        instance = random_instance(rng)
        schedule = run(instance, make_policy(name))
        drawn += [(instance, schedule)]
        drawn += [(instance, spoilt_schedule(rng, schedule, len(instance.cluster.servers))) for _ in range(9)]
    valid: Counter[bool] = Counter()
    for (instance, schedule), answer in zip(drawn, answers(schedule_question(*pair) for pair in drawn), strict=True):
        report = check_schedule(instance, schedule)
        assert answer == ("yes" if report.valid else "no"), (report, instance, schedule)
        valid[report.valid] += 1
    assert valid.total() >= 300
    assert min(valid.values()) >= 80, valid
