"""A policy whose every decision is looked at while it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frostline.policies.base import Decision, Policy, Preempt, Reallocate, Start, View, Wait
from frostline.policies.task import Running, Task
from frostline.units import seconds

__all__ = ["Watched", "counted_gpus"]


class Watched:
    """Passes the decisions of a policy on, and writes down the rules that they break.

    Parameters
    ----------
    policy : Policy
        The policy.
    strict, work_conserving : bool
        Whether it claims to be.

    Attributes
    ----------
    found : dict of str to str
        Rules that are broken, and how the first time.
    """

    def __init__(self, policy: Policy, *, strict: bool = False, work_conserving: bool = False) -> None:
        self._policy, self._strict, self._work_conserving = policy, strict, work_conserving
        self.found: dict[str, str] = {}
        self._wasted: dict[str, tuple[int, tuple[int, int]]] = {}  # useless runs in a row, and what was known then
        self._held: dict[str, tuple[list[int], tuple[int, int]]] = {}  # GPUs it had in turn, and what was known then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    @property
    def name(self) -> str:
        """That of the policy."""
        return self._policy.name

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Those of the policy."""
        return self._policy.parameters

    @property
    def uses_virtual_machine(self) -> bool:
        """As the policy says."""
        return self._policy.uses_virtual_machine

    def note(self, rule: str, text: str) -> None:
        """Write down that a rule is broken, unless it was before."""
        self.found.setdefault(rule, text)

    def priority(self, task: Task) -> Any:
        """What the policy says, twice."""
        first, second = self._policy.priority(task), self._policy.priority(task)
        if first != second:
            text = f"the priority of job {task.job.id!r} is {first!r}, and {second!r} when it is asked again"
            self.note("stateless", text)
        return first

    def decide(self, view: View) -> Decision:
        """What the policy says, twice; the first answer counts."""
        before = _fingerprint(view)
        decision = self._asked(view)
        changed = [name for name, value in _fingerprint(view).items() if value != before[name]]
        if changed:
            self.note("read-only", f"at {_now(view)} it changes the view: {', '.join(changed)}")
            return decision
        again = self._asked(view)
        if decision != again:
            text = f"at {_now(view)} it {_told(decision)}, and when it is asked again it {_told(again)}"
            self.note("stateless", text)
        if isinstance(decision, (Start, Preempt)):
            self._look_at_order(view, decision.task)
        elif isinstance(decision, Wait) and self._work_conserving:
            self._look_at_idle_gpus(view)
        if isinstance(decision, Preempt):
            self._look_at_victims(view, decision)
        elif isinstance(decision, Reallocate):
            self._look_at_moves(view, decision)
        return decision

    def _asked(self, view: View) -> Decision:
        """What the policy says."""
        try:
            return self._policy.decide(view)
        except Exception as error:
            self.note("legal", f"at {_now(view)} it raises {type(error).__name__}: {error}")
            raise

    def _look_at_order(self, view: View, task: Task) -> None:
        """In strict order only the first task may start."""
        first = view.due if self.uses_virtual_machine else view.waiting.first
        if self._strict and first is not task:
            why = "nothing is due" if first is None else f"job {first.job.id!r} is before it"
            self.note("strict", f"at {_now(view)} it starts job {task.job.id!r} although {why}")

    def _look_at_idle_gpus(self, view: View) -> None:
        """Where no GPU idles in vain, nothing that fits may wait."""
        for line in view.waiting.lines:
            if line and view.free.fits(line.shape):
                task = line.head[2]
                text = (
                    f"at {_now(view)} job {task.job.id!r} waits although it fits: it asks for {counted_gpus(task.gpus)}"
                )
                self.note("work-conserving", f"{text}, with {counted_gpus(view.free.total)} free")
                return

    def _look_at_victims(self, view: View, decision: Preempt) -> None:
        """No more victims than needed, and none in vain."""
        newcomer = decision.task
        victims = [run for run in view.running if run.task in decision.victims]
        spared = _spared(view, newcomer, victims)
        if spared is not None:
            self.note(
                "fewest-victims", f"at {_now(view)} it evicts {spared} for job {newcomer.job.id!r}, which fits without"
            )
        for run in victims:
            self._look_at_waste(view, run, f"evicts job {run.task.job.id!r} for job {newcomer.job.id!r}")

    def _look_at_moves(self, view: View, decision: Reallocate) -> None:
        """No GPUs are taken from a task, or given to it, in vain, nor to and fro."""
        for share in decision.shares:
            run = view.runs.get(share.task.job.id)
            if run is not None and run.task is share.task and run.gpus != share.gpus:
                job, given = share.task.job.id, counted_gpus(share.gpus)
                self._look_at_waste(view, run, f"gives job {job!r} {given} in place of {run.gpus}")
                held, since = self._held.get(job, ([], _news(view)))
                held = [*(held if since == _news(view) else []), run.gpus, share.gpus]
                self._held[job] = held, _news(view)
                if len(held) >= 6 and held[-6:-4] == held[-2:]:
                    text = f"at {_now(view)} it gives job {job!r} {given} in place of {run.gpus}"
                    self.note("no-ping-pong", f"{text}, again: nothing is new since it did so before")

    def _look_at_waste(self, view: View, run: Running, what: str) -> None:
        """A run that ends before its restart has done nothing; twice in a row, and nothing new, that is for ever."""
        victim, news = run.task.job.id, _news(view)
        times, since = self._wasted.pop(victim, (0, news))
        if view.now_us - run.start_us > run.restart_us:
            return
        self._wasted[victim] = times, since = (times + 1 if since == news else 1), news
        if times > 1:
            why = f"nothing is new, and job {victim!r} has done nothing in its last two runs"
            self.note("no-ping-pong", f"at {_now(view)} it {what}: {why}")


def _news(view: View) -> tuple[int, int]:
    """How many jobs have arrived, and how many of them have ended."""
    return view.arrived, view.arrived - len(view.waiting) - len(view.runs)


def _spared(view: View, newcomer: Task, victims: Sequence[Running]) -> str | None:
    """Of whom a newcomer has no need to fit, in words; None where it needs them all."""
    free = view.free.copy()
    if free.fits(newcomer.shape):
        return "others"
    for run in victims:
        free.give(run.loads)
    for run in victims:
        free.take(run.loads)
        if free.fits(newcomer.shape):
            return f"job {run.task.job.id!r}"
        free.give(run.loads)
    return None


def _fingerprint(view: View) -> dict[str, Any]:
    """All that a policy could spoil."""
    free = view.free
    return {
        "now": view.now_us,
        "free GPUs": (free.total, *free.by_server),
        "running tasks": [(*run, *_state(run.task)) for run in view.running],
        "waiting tasks": [_state(task) for line in view.waiting.lines for task in line],
        "waiting tasks by number": [*view.waiting.tasks.items()],
        "virtual order": (view.due, view.next_due_us),
        "counts": (view.arrived, view.arrived_work, view.longest_us, view.budget_gpus, view.out_of_order_gpus),
    }


def _state(task: Task) -> tuple[Any, ...]:
    times = task.release_us, task.duration_us, task.high_us, task.due_us
    return task, task.job, task.shape, task.number, task.priority, task.past, task.belief, *times


def counted_gpus(count: int) -> str:
    """A number of GPUs in words."""
    return f"{count} GPU{'' if count == 1 else 's'}"


def _now(view: View) -> str:
    return f"{seconds(view.now_us):.15g} s"


def _told(decision: object) -> str:
    """A decision in words."""
    if isinstance(decision, Start):
        return f"starts job {decision.task.job.id!r}"
    if isinstance(decision, Preempt):
        victims = ", ".join(repr(victim.job.id) for victim in decision.victims)
        return f"evicts {victims} for job {decision.task.job.id!r}"
    if isinstance(decision, Reallocate):
        shares = (f"{share.gpus} to {share.task.job.id!r} at level {share.level}" for share in decision.shares)
        return f"reallocates GPUs, {', '.join(shares) or 'none'}"
    if isinstance(decision, Wait):
        return "waits" if decision.until_us is None else f"waits until {seconds(decision.until_us):.15g} s"
    return f"answers {decision!r}"
