"""Hypothesis strategies for clusters, jobs, instances, networks, stage graphs, freeze menus and valid schedules.

They shrink to small readable cases: few jobs ``J1``, ``J2``, … of whole seconds on few servers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from hypothesis import strategies as st

from frostline.freezing import FreezablePlan, FreezeLevels, FreezeRow, debt_prior, debt_priors, freeze_menu
from frostline.problem.cluster import Cluster, GpuType, Server
from frostline.problem.instance import Instance
from frostline.problem.job import Elastic, Fixed, Job, Locality, PlacementClass, Profiled, Training, Work
from frostline.problem.network import Edge, Layer, Network
from frostline.problem.plan import TrainingPlan
from frostline.problem.refusal import never_fits
from frostline.problem.schedule import Schedule
from frostline.testing.list_schedule import Choice, list_schedule
from frostline.timing.stage_graph import StageGraph
from frostline.units import US_PER_S

__all__ = [
    "clusters",
    "durations_s",
    "elastic_works",
    "freeze_menus",
    "instances",
    "instants_s",
    "jobs",
    "networks",
    "plans",
    "schedules",
    "stage_graphs",
]

ANY = (Locality.ANY,)


def instants_s(max_s: int = 20) -> st.SearchStrategy[float]:
    """Instants from 0 in seconds: whole seconds, so that jobs coincide, or whole microseconds."""
    return st.integers(0, max_s).map(float) | st.integers(0, max_s * US_PER_S).map(lambda us: us / US_PER_S)


def durations_s(max_s: int = 20) -> st.SearchStrategy[float]:
    """Durations above 0 in seconds: whole seconds or whole microseconds."""
    return st.integers(1, max_s).map(float) | st.integers(1, max_s * US_PER_S).map(lambda us: us / US_PER_S)


@st.composite
def clusters(
    draw: st.DrawFn, *, max_servers: int = 3, max_gpus: int = 8, pool: bool = False, uniform: bool = False
) -> Cluster:
    """Clusters of at least one GPU.

    Parameters
    ----------
    max_servers : int
        Most servers.
    max_gpus : int
        Most GPUs of one server, or of the pool.
    pool : bool
        One pool without servers.
    uniform : bool
        Equal servers only.
    """
    if pool:
        return Cluster.pool(draw(st.integers(1, max_gpus)))
    if uniform:
        return Cluster.uniform(draw(st.integers(1, max_servers)), gpus=draw(st.integers(1, max_gpus)))
    sizes = draw(st.lists(st.integers(1, max_gpus), min_size=1, max_size=max_servers))
    return Cluster(servers=tuple(Server(id=f"s{i}", gpus=gpus) for i, gpus in enumerate(sizes)))


def _fixed(gpus: int) -> st.SearchStrategy[Work]:
    return st.builds(Fixed, duration_s=durations_s())


@st.composite
def _profiled(draw: st.DrawFn, gpus: int) -> Work:
    one = draw(durations_s(2))
    table = {PlacementClass.ONE_SERVER: one, PlacementClass.MANY_SERVERS: one * draw(st.sampled_from([1.0, 1.5, 3.0]))}
    return Profiled(iterations=draw(st.integers(1, 10)), seconds_per_iteration=table)


@st.composite
def elastic_works(
    draw: st.DrawFn, *, gpus: int | None = None, max_gpus: int = 8, max_levels: int = 4, max_iterations: int = 10
) -> Elastic:
    """Elastic work whose times do not rise with the freeze level; a class of placement may lack a width.

    Parameters
    ----------
    gpus : int, optional
        One of its widths.
    max_gpus : int
        Largest of the other widths.
    max_levels : int
        Most freeze levels, level 0 included, at most 9.
    max_iterations : int
        Most iterations.
    """
    some = draw(st.sets(st.integers(1, max_gpus), min_size=gpus is None, max_size=3))
    widths = sorted(some if gpus is None else some | {gpus})
    levels = draw(st.integers(1, max_levels))
    shares = draw(st.lists(st.integers(0, 8), min_size=levels - 1, max_size=levels - 1))
    table: dict[PlacementClass, dict[int, tuple[float, ...]]] = {}
    for width in widths:
        for where in draw(st.sampled_from([[c] for c in PlacementClass] + [list(PlacementClass)])):
            row = draw(st.lists(durations_s(2), min_size=levels, max_size=levels))
            table.setdefault(where, {})[width] = tuple(sorted(row, reverse=True))
    return Elastic(
        iterations=draw(st.integers(1, max_iterations)),
        widths=tuple(widths),
        seconds_per_iteration=table,
        compute_shares=(0.0, *(share / 8 for share in sorted(shares))),
        family=draw(st.sampled_from(["unknown", "cnn", "fine-tuning"])),
        quality_budget_points=draw(st.sampled_from([0.0, 0.5])),
        warm_up=draw(st.sampled_from([0.2, 0.0, 0.5])),
    )


def _elastic(gpus: int) -> st.SearchStrategy[Work]:
    return elastic_works(gpus=gpus)


def _training(gpus: int) -> st.SearchStrategy[Work]:
    plan = plans(gpus=gpus) | plans(gpus=gpus, max_gpus_per_replica=4)
    return st.builds(Training, plan=plan, iterations=st.integers(1, 10))


_WORKS: dict[str, Callable[[int], st.SearchStrategy[Work]]] = {
    "elastic": _elastic,
    "fixed": _fixed,
    "profiled": _profiled,
    "training": _training,
}


@st.composite
def jobs(
    draw: st.DrawFn,
    *,
    job_id: str | None = None,
    max_gpus: int = 8,
    localities: Sequence[Locality] = ANY,
    works: Sequence[str] = ("fixed",),
) -> Job:
    """Jobs.

    Parameters
    ----------
    job_id : str, optional
        Identifier; by default some text.
    max_gpus : int
        Most GPUs.
    localities : sequence of Locality
        Localities to choose from.
    works : sequence of str
        Kinds of work to choose from, of ``fixed``, ``profiled``, ``elastic`` and ``training``.
    """
    gpus = draw(st.integers(1, max_gpus))
    texts = st.sampled_from(["", "u1", "u2"])
    return Job(
        id=draw(st.text(min_size=1, max_size=5)) if job_id is None else job_id,
        release_s=draw(instants_s()),
        work=draw(_WORKS[draw(st.sampled_from(works))](gpus)),
        gpus=gpus,
        user=draw(texts),
        group=draw(texts),
        locality=draw(st.sampled_from(localities)),
        estimate_s=draw(st.none() | durations_s(60)),
    )


@st.composite
def instances(
    draw: st.DrawFn,
    *,
    max_jobs: int = 6,
    max_gpus: int = 8,
    max_servers: int = 3,
    pool: bool = False,
    uniform: bool = False,
    localities: Sequence[Locality] = ANY,
    works: Sequence[str] = ("fixed",),
    impossible: bool = False,
) -> Instance:
    """Instances whose jobs all fit the empty cluster.

    Parameters
    ----------
    max_jobs : int
        Most jobs; there may be none.
    max_gpus, max_servers, pool, uniform
        Of the cluster, see :func:`clusters`.
    localities, works
        Of the jobs, see :func:`jobs`; where one server cannot hold a job, locality ``server`` becomes ``fewest``.
    impossible : bool
        Whether jobs may be too large for the cluster, or for any server.
    """
    cluster = draw(clusters(max_servers=max_servers, max_gpus=max_gpus, pool=pool, uniform=uniform))
    widest = cluster.gpus + 2 if impossible else cluster.gpus
    drawn = [
        draw(jobs(job_id=f"J{i}", max_gpus=widest, localities=localities, works=works))
        for i in range(1, draw(st.integers(0, max_jobs)) + 1)
    ]
    if not impossible:
        drawn = [_that_fits(job, cluster) for job in drawn]
    return Instance(cluster=cluster, jobs=tuple(drawn), name="drawn")


def _that_fits(job: Job, cluster: Cluster) -> Job:
    if job.locality is Locality.SERVER and job.gpus > cluster.largest:
        job = job.replace(locality=Locality.FEWEST)
    if never_fits(job, cluster) is not None and isinstance(job.work, Training):
        plan = job.work.plan.replace(gpus_per_replica=())
        job = job.replace(work=Training(plan=plan, iterations=job.work.iterations), gpus=plan.gpus)
    return job


@st.composite
def networks(draw: st.DrawFn, *, min_layers: int = 1, max_layers: int = 6) -> Network:
    """Connected networks, chains with skip connections, of layers ``0``, ``1``, …"""
    figures = st.integers(0, 1000)
    count = draw(st.integers(min_layers, max_layers))
    layers = [
        Layer(
            id=i,
            params=draw(figures),
            forward_flops=draw(figures) * 10**9,
            backward_flops=draw(figures) * 10**9,
            output_elements=draw(figures),
            saved_bytes=draw(figures),
        )
        for i in range(count)
    ]
    pairs = {(draw(st.integers(0, i - 1)), i) for i in range(1, count)}
    if count > 1:
        skips = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] < pair[1])
        pairs |= draw(st.sets(skips, max_size=3))
    edges = [Edge(source=s, target=t, elements=draw(figures)) for s, t in sorted(pairs)]
    return Network(name="drawn", layers=tuple(layers), edges=tuple(edges))


@st.composite
def plans(draw: st.DrawFn, *, gpus: int, max_stages: int = 3, max_gpus_per_replica: int = 1) -> TrainingPlan:
    """Training plans on so many GPUs, with any cuts and any replicas.

    Parameters
    ----------
    gpus : int
        GPUs of the plan.
    max_stages : int
        Most stages.
    max_gpus_per_replica : int
        Most GPUs of one replica.
    """
    network = draw(networks())
    stages = draw(st.integers(1, min(gpus, max_stages, len(network.layers))))
    shares = _differences(draw(_cuts(gpus, stages)))
    sizes = [draw(st.sampled_from(_divisors(share, max_gpus_per_replica))) for share in shares]
    replicas = [share // size for share, size in zip(shares, sizes, strict=True)]
    layers = draw(_cuts(len(network.layers), stages))
    micro_batches = draw(st.integers(1, 4))
    return TrainingPlan(
        network=network,
        stages=tuple(range(start, stop) for start, stop in pairwise(layers)),
        replicas=tuple(replicas),
        global_batch=micro_batches * max(replicas) * draw(st.integers(1, 4)),
        micro_batches=micro_batches,
        gpus_per_replica=tuple(sizes),
    )


def _cuts(length: int, parts: int) -> st.SearchStrategy[list[int]]:
    inner = st.sets(st.integers(1, length - 1), min_size=parts - 1, max_size=parts - 1) if parts > 1 else st.just(set())
    return inner.map(lambda cuts: [0, *sorted(cuts), length])


def _divisors(number: int, most: int) -> list[int]:
    return [divisor for divisor in range(1, min(number, most) + 1) if number % divisor == 0]


def _differences(cuts: Sequence[int]) -> list[int]:
    return [stop - start for start, stop in pairwise(cuts)]


@st.composite
def freeze_menus(draw: st.DrawFn, *, max_gpus: int = 6, max_servers: int = 3) -> tuple[FreezeRow, ...]:
    """Freeze menus of drawn plans, placed anew at each level; the debt of a row is that of a whole run at its level.

    Levels freeze any first units; there is level 0 alone where the network has one unit. The memory may be too small
    for all levels, for some, or for none.

    Parameters
    ----------
    max_gpus : int
        Most GPUs of the plan.
    max_servers : int
        Most servers, which are equal.
    """
    gpus = draw(st.integers(1, max_gpus))
    plan = draw(plans(gpus=gpus).filter(lambda drawn: drawn.network.params > 0))
    if draw(st.sampled_from([True, False])):
        plan = plan.replace(network=_chain(plan.network))
    freezable = FreezablePlan.of(plan, comm=draw(st.sampled_from(["static", "rebuild"])))
    memory_bytes = draw(st.none() | st.integers(1, 100_000))
    kind = GpuType(name="drawn", peak_flops={plan.precision: 1e14}, memory_bytes=memory_bytes)
    servers = draw(st.integers(1, max_servers))
    cluster = Cluster.uniform(servers, gpus=-(-gpus // servers), gpu_type=kind)
    units = freezable.units.units
    cuts = range(1, len(units))
    frozen = draw(st.sets(st.sampled_from(cuts), min_size=1, max_size=8)) if cuts else set()
    levels = FreezeLevels(units=units, frozen_units=(0, *sorted(frozen)))
    law = debt_prior(draw(st.sampled_from(sorted(debt_priors()))))
    return freeze_menu(
        freezable,
        cluster,
        levels=levels,
        debt_of=lambda row: law.debt_points(row.compute_share, law.warm_up, 1.0),
        method="heavy-edge",
    )


def _chain(network: Network) -> Network:
    """The layers of a network one after the other, which has as many freeze units as layers with parameters."""
    links = pairwise(layer.id for layer in network.layers)
    return network.replace(edges=tuple(Edge(source=s, target=t, elements=1) for s, t in links))


@st.composite
def stage_graphs(draw: st.DrawFn, *, max_stages: int = 4, max_gpus: int = 8) -> StageGraph:
    """Stage graphs with traffic between any two stages, some of it both ways.

    Parameters
    ----------
    max_stages : int
        Most stages.
    max_gpus : int
        Most replicas of all stages together.
    """
    stages = draw(st.integers(1, min(max_stages, max_gpus)))
    replicas = _differences(draw(_cuts(draw(st.integers(stages, max_gpus)), stages)))
    megabytes = st.integers(0, 100).map(lambda count: count * 10**6)
    pairs = [(s, t) for t in range(stages) for s in range(t)]
    edges = draw(st.dictionaries(st.sampled_from(pairs), megabytes)) if pairs else {}
    back = draw(st.dictionaries(st.sampled_from(sorted(edges)), megabytes, max_size=1)) if edges else {}
    return StageGraph(
        replicas=replicas,
        compute_s=[draw(st.integers(0, 100)) / 1000 for _ in replicas],
        gradient_bytes=[draw(megabytes) for _ in replicas],
        edges={**edges, **{(t, s): count for (s, t), count in back.items()}},
    )


@st.composite
def schedules(draw: st.DrawFn, instance: Instance, *, max_delay_s: int = 3) -> Schedule:
    """Valid schedules of an instance: any order of the jobs, any delays, any servers that will do.

    Parameters
    ----------
    instance : Instance
        The problem.
    max_delay_s : int
        Most seconds by which a job is put off for no reason.
    """
    order = draw(st.permutations(range(len(instance.jobs))))
    servers = st.permutations(range(len(instance.cluster.servers)))
    choices = [
        Choice(
            job=job,
            delay_us=draw(st.integers(0, max_delay_s)) * US_PER_S,
            servers=draw(servers),
            spread=draw(st.booleans()),
        )
        for job in order
    ]
    return list_schedule(instance, choices)
