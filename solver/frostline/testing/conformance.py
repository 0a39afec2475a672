"""Check a scheduling policy against all that frostline asks of one, as scikit-learn checks an estimator.

Instances are drawn by Hypothesis; one that breaks a rule is made as small as it can be and shown as Python source.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

from frostline.errors import UnknownNameError
from frostline.policies.base import PlanningPolicy, Policy
from frostline.policies.registry import make_policy
from frostline.problem.instance import Instance
from frostline.problem.job import Elastic, Fixed, Job, Locality, PlacementClass, Profiled, Work
from frostline.scheduler.scheduler import Scheduler
from frostline.testing.audit import RULES, Auditor, SchedulerFactory
from frostline.testing.code import instance_code
from frostline.testing.smaller import simplicity, smallest
from frostline.testing.strategies import clusters
from frostline.units import US_PER_S, as_int

__all__ = ["CLAIMS", "Conformance", "ConformanceReport", "assert_conforms", "check_policy", "contended_instances"]

CLAIMS = ("strict", "work-conserving")
"""What a policy may claim by its attribute ``claims``."""

Status = Literal["kept", "broken", "not claimed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conformance:
    """What came out for one rule.

    Parameters
    ----------
    rule : str
        Its name, one of :data:`~frostline.testing.audit.RULES`.
    status : {"kept", "broken", "not claimed"}
        ``kept`` on every instance that was drawn; ``not claimed`` where the policy need not keep it.
    text : str
        How it is broken.
    instance : Instance or None
        A small instance on which it is broken.
    """

    rule: str
    status: Status
    text: str = ""
    instance: Instance | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceReport:
    """What came out for every rule.

    Parameters
    ----------
    policy : str
        Name of the policy.
    examples : int
        Instances that were drawn.
    seed : int
        Seed of the draw.
    outcomes : tuple of Conformance
        One for each rule, in the order of :data:`~frostline.testing.audit.RULES`.
    """

    policy: str
    examples: int
    seed: int
    outcomes: tuple[Conformance, ...]

    @property
    def passed(self) -> bool:
        """Whether no rule is broken."""
        return not self.broken

    @property
    def broken(self) -> tuple[Conformance, ...]:
        """The rules that are broken."""
        return tuple(outcome for outcome in self.outcomes if outcome.status == "broken")

    def __str__(self) -> str:
        broken, drawn = self.broken, f"{self.examples} instances, seed {self.seed}"
        if not broken:
            kept = sum(outcome.status == "kept" for outcome in self.outcomes)
            return f"policy {self.policy!r} keeps {kept} rules of {kept}: {drawn}"
        rules = f"{len(broken)} rule{'s' if len(broken) > 1 else ''}"
        return "\n\n".join([f"policy {self.policy!r} breaks {rules}: {drawn}", *map(_told, broken)])


def _told(outcome: Conformance) -> str:
    """A broken rule as text."""
    lines = [f"{outcome.rule}: {RULES[outcome.rule]}", f"    {outcome.text}"]
    if outcome.instance is not None:
        lines += ["  on", textwrap.indent(instance_code(outcome.instance), "    ")]
    return "\n".join(lines)


def check_policy(
    policy: Policy | str,
    *,
    claims: Iterable[str] | None = None,
    examples: int = 200,
    seed: int = 0,
    strategy: st.SearchStrategy[Instance] | None = None,
    scheduler: SchedulerFactory = Scheduler,
) -> ConformanceReport:
    """Check a policy, and the scheduler that runs it, on instances that are drawn at random.

    Each instance is run with every decision looked at, then three times more: again, with the jobs handed in at once
    in another order, and under other names. Jobs may be too large for the cluster, and durations range from a
    microsecond to hours. Sizes are known; nothing is predicted. Work is elastic only where the policy changes its GPUs
    or levels.

    Parameters
    ----------
    policy : Policy or str
        A policy, or its name with parameters.
    claims : iterable of str, optional
        What the policy claims, of :data:`CLAIMS`: ``strict``, that only the first task in order starts, or with a
        virtual machine the first that is due; ``work-conserving``, that no task waits that fits. By default its
        attribute ``claims``, if it has one, else nothing. The guarantee is claimed by a method ``promise``.
    examples : int
        Instances to draw.
    seed : int
        Seed of the draw. Equal seeds draw equal instances.
    strategy : SearchStrategy of Instance, optional
        Where the instances come from, by default :func:`contended_instances`.
    scheduler : callable
        What runs the policy: :class:`~frostline.scheduler.Scheduler` or a class derived from it.

    Returns
    -------
    ConformanceReport
        One outcome for each rule. As text, what is broken with an instance that shows it.

    Raises
    ------
    UnknownNameError
        No such policy or claim.
    InvalidValueError
        A number is out of its range.

    Examples
    --------
    >>> print(check_policy("sjf", claims=["work-conserving"], examples=20))
    policy 'sjf' keeps 11 rules of 11: 20 instances, seed 0
    >>> print(check_policy("sjf", claims=["strict"], examples=50))
    policy 'sjf' breaks 1 rule: 50 instances, seed 0
    ...
    """
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    said = frozenset(getattr(chosen, "claims", ()) if claims is None else claims)
    for claim in sorted(said.difference(CLAIMS)):
        raise UnknownNameError("claim", claim, CLAIMS)
    examples = as_int(examples, "check_policy", "examples", 1)
    auditor = Auditor(policy=chosen, claims=said, scheduler=scheduler)
    elastic = getattr(chosen, "elastic", False) or isinstance(chosen, PlanningPolicy)
    drawn = contended_instances(elastic=elastic) if strategy is None else strategy
    search = _Search(auditor, drawn, examples, as_int(seed, "check_policy", "seed", 0), simplify=strategy is None)
    broken = search.broken()
    outcomes = [broken.get(rule) or Conformance(rule=rule, status=_status(rule, chosen, said)) for rule in RULES]
    return ConformanceReport(policy=chosen.name, examples=examples, seed=seed, outcomes=tuple(outcomes))


def assert_conforms(
    policy: Policy | str,
    *,
    claims: Iterable[str] | None = None,
    examples: int = 200,
    seed: int = 0,
    strategy: st.SearchStrategy[Instance] | None = None,
    scheduler: SchedulerFactory = Scheduler,
) -> None:
    """Assert that a policy breaks no rule; see :func:`check_policy`.

    Raises
    ------
    AssertionError
        It breaks some. The message is the report: each rule with a small instance that shows it.

    Examples
    --------
    >>> assert_conforms("easy", examples=20)
    """
    report = check_policy(policy, claims=claims, examples=examples, seed=seed, strategy=strategy, scheduler=scheduler)
    if not report.passed:
        raise AssertionError(str(report))


def _status(rule: str, policy: Policy, claims: frozenset[str]) -> Status:
    """Of a rule that is not broken."""
    claimed = {
        "guarantee": hasattr(policy, "promise"),
        "fewest-victims": hasattr(policy, "restart_s") and not getattr(policy, "elastic", False),
        "no-ping-pong": hasattr(policy, "restart_s"),
        **{claim: claim in claims for claim in CLAIMS},
    }
    return "kept" if claimed.get(rule, True) else "not claimed"


@st.composite
def contended_instances(
    draw: st.DrawFn, *, max_jobs: int = 6, max_gpus: int = 4, max_servers: int = 3, elastic: bool = False
) -> Instance:
    """Small instances on which jobs get into each other's way.

    Jobs are fixed or profiled, often alike, and some never fit; they take seconds in one half of the instances and
    hours in the other.

    Parameters
    ----------
    max_jobs : int
        Most jobs; there may be none.
    max_gpus, max_servers : int
        Most GPUs of a server, and most servers.
    elastic : bool
        Whether every other job may change its GPUs and freeze levels; then jobs take minutes in place of hours.
    """
    cluster = draw(clusters(max_gpus=max_gpus, max_servers=max_servers))
    unit_s = draw(st.sampled_from([1, 30 if elastic else 400]))
    drawn: list[Job] = []
    many = st.integers(min(4, max_jobs), max_jobs)
    for number in range(1, draw(st.integers(0, max_jobs) | many | many | many) + 1):
        release_s, works = draw(st.just(0) | st.integers(0, 10)) * unit_s, _works(unit_s)
        job = Job(
            id=f"J{number}",
            release_s=release_s,
            work=draw(works),
            gpus=draw(st.just(1) | st.integers(1, cluster.gpus) | st.integers(1, cluster.gpus + 1)),
            locality=draw(st.sampled_from(Locality)),
        )
        if elastic and draw(st.booleans()):
            job = job.replace(work=draw(_elastic_works(unit_s, job.gpus, cluster.gpus)))
        if draw(st.integers(0, 2)) == 2 and drawn:
            job = drawn[-1].replace(id=job.id, release_s=job.release_s)
        drawn.append(job)
    return Instance(cluster=cluster, jobs=tuple(drawn))


def _works(unit_s: int) -> st.SearchStrategy[Work]:
    """Work of up to 20 units: of whole seconds, of whole microseconds, or slower on several servers."""
    units = st.integers(1, 20).map(lambda count: count * unit_s)
    seconds = units | st.integers(1, 20 * US_PER_S).map(lambda us: us * unit_s / US_PER_S)
    one, many = PlacementClass.ONE_SERVER, PlacementClass.MANY_SERVERS
    profiled = st.builds(
        lambda iterations, factor: Profiled(iterations=iterations, seconds_per_iteration={one: 1.0, many: factor}),
        units,
        st.sampled_from([1.0, 1.5, 3.0]),
    )
    return st.builds(lambda duration_s: Fixed(duration_s=duration_s), seconds) | profiled


@st.composite
def _elastic_works(draw: st.DrawFn, unit_s: int, gpus: int, most_gpus: int) -> Elastic:
    """Elastic work of up to 20 units on the GPUs that are asked for, on others, too, and at up to three levels."""
    widths = sorted({gpus, *draw(st.sets(st.integers(1, most_gpus), max_size=2))})
    slower, levels = draw(st.sampled_from([1.0, 1.5])), draw(st.integers(1, 3))
    table = {
        where: {width: tuple(step * 4 / (width + 3) * (8 - level) / 8 for level in range(levels)) for width in widths}
        for where, step in [(PlacementClass.ONE_SERVER, 1.0), (PlacementClass.MANY_SERVERS, slower)]
    }
    return Elastic(
        iterations=draw(st.integers(1, 20)) * unit_s,
        widths=tuple(widths),
        seconds_per_iteration=table,
        compute_shares=(0.0, 0.25, 0.5)[:levels],
        family="fine-tuning",
        quality_budget_points=draw(st.sampled_from([0.0, 30.0])),
    )


class _HitError(Exception):
    """The instance breaks the rule that is looked for."""


class _Search:
    """Looks for instances that break rules, and for small ones among them.

    What came out for an instance is remembered, so that a policy that answers by chance does not confuse the search.
    Instances of a strategy of the user are made smaller by Hypothesis, which keeps to the strategy.
    """

    def __init__(
        self,
        auditor: Auditor,
        strategy: st.SearchStrategy[Instance],
        examples: int,
        number: int,
        *,
        simplify: bool,
    ) -> None:
        self._auditor, self._strategy = auditor, strategy
        self._examples, self._seed, self._simplify = examples, number, simplify
        self._known: dict[tuple[str, bool], dict[str, str]] = {}

    def broken(self) -> dict[str, Conformance]:
        """Every rule that is broken on some instance."""
        first: dict[str, list[Instance]] = {}

        def visit(instance: Instance) -> None:
            for rule in self._look(instance):
                first.setdefault(rule, []).append(instance)

        self._draw(visit, (Phase.generate,))
        return {rule: self._small(rule, found) for rule, found in first.items()}

    def _look(self, instance: Instance, *, one_run: bool = False) -> dict[str, str]:
        key = instance_code(instance), one_run
        if key not in self._known:
            self._known[key] = self._auditor.broken(instance, one_run=one_run)
        return self._known[key]

    def _small(self, rule: str, found: list[Instance]) -> Conformance:
        """A small instance that breaks a rule: of some that do, the one that becomes smallest."""
        texts = {instance_code(found[0]): self._look(found[0])[rule]}
        last = found[0]

        def breaks(instance: Instance) -> bool:
            nonlocal last
            text = self._look(instance, one_run=rule != "deterministic").get(rule)
            if text is not None:
                texts[instance_code(instance)], last = text, instance
            return text is not None

        if self._simplify:
            last = min((smallest(instance, breaks) for instance in found[:_MOST_STARTS]), key=simplicity)
        else:
            self._shrink(breaks)
        return Conformance(rule=rule, status="broken", text=texts[instance_code(last)], instance=last)

    def _shrink(self, breaks: Callable[[Instance], bool]) -> None:
        """Let Hypothesis look for smaller and smaller instances; the last one that breaks the rule is the smallest."""

        def visit(instance: Instance) -> None:
            if breaks(instance):
                raise _HitError

        with suppress(_HitError):
            self._draw(visit, (Phase.generate, Phase.shrink))

    def _draw(self, visit: Callable[[Instance], None], phases: Iterable[Phase]) -> None:
        """Show instances to a visitor, in batches: within one, Hypothesis likes to vary what it has drawn before."""
        for number, done in enumerate(range(0, self._examples, _BATCH)):
            _batch(self._strategy, visit, phases, min(_BATCH, self._examples - done), self._seed << 32 | number)


_BATCH = 25
_MOST_STARTS = 6


def _batch(
    strategy: st.SearchStrategy[Instance],
    visit: Callable[[Instance], None],
    phases: Iterable[Phase],
    examples: int,
    number: int,
) -> None:
    """Show some instances to a visitor."""

    @seed(number)
    @settings(
        max_examples=examples,
        phases=tuple(phases),
        database=None,
        deadline=None,
        derandomize=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    @given(strategy)
    def show(instance: Instance) -> None:
        visit(instance)

    show()
