"""What a policy decides, carried out as a whole or refused: then nothing has changed."""

from __future__ import annotations

from frostline.errors import InvalidValueError
from frostline.policies.base import Preempt, Reallocate, Start
from frostline.policies.task import Running, StartKind, Task
from frostline.problem.schedule import Segment
from frostline.scheduler.decision import segment_of
from frostline.scheduler.elastic import plan_shares
from frostline.scheduler.progress import offer_of
from frostline.scheduler.state import State

__all__ = ["preempt", "reallocate", "start"]


def start(state: State, decision: Start) -> Segment:
    """Start a task, if it waits and fits."""
    task = decision.task
    waits = state.waiting.tasks.get(task.number) is task
    offer = state.offer(task) if waits else None
    if offer is None:
        rule = f"was started by the policy but {'does not fit' if waits else 'is not waiting'}"
        raise _refused(state, "start", task.job.id, rule)
    return segment_of(state.start(task, offer, decision.kind), offer)


def preempt(state: State, decision: Preempt, evictions: list[str]) -> Segment:
    """Evict the victims and start the task, if it waits and then fits."""
    task = decision.task
    if state.restart_us is None or state.policy.uses_virtual_machine:
        rule = "must not evict, because the policy tells no restart_s or keeps a virtual order"
        raise _refused(state, "preempt", task.job.id, rule)
    runs = [_victim(state, victim) for victim in dict.fromkeys(decision.victims)]
    offer = state.offer_without(task, runs) if runs and task in state.waiting else None
    if offer is None:
        rule = "was to evict others but names no victims, is not waiting, or does not fit even then"
        raise _refused(state, "preempt", task.job.id, rule)
    for run in runs:
        evictions.append(run.task.job.id)
        state.evict(run)
    return segment_of(state.start(task, offer, StartKind.IN_ORDER), offer)


def _victim(state: State, victim: Task) -> Running:
    """Run of a task that may be evicted."""
    run = state.runs.get(victim.job.id)
    if run is None or run.task is not victim:
        raise _refused(state, "victim", victim.job.id, "is not running")
    if run.start_us >= state.now_us:
        raise _refused(state, "victim", victim.job.id, "has started at this very instant")
    return run


def reallocate(state: State, decision: Reallocate, starts: list[Segment], evictions: list[str]) -> None:
    """Make all changes of a reallocation, if they can be made."""
    if not state.elastic or state.restart_us is None or state.reallocated_us == state.now_us:
        rule = "must not be: the policy is not elastic, tells no restart_s, or has reallocated at this instant"
        raise _refused(state, "reallocate", len(decision.shares), rule)
    plan = plan_shares(state, decision.shares)
    state.reallocated_us = state.now_us
    for run in plan.stops:
        evictions.append(run.task.job.id)
        state.evict(run)
    for run, level in plan.levels:
        changed = state.change_level(run, level)
        starts.append(segment_of(changed, offer_of(changed)))
    for task, placement, level in plan.starts:
        begun = state.start_at(task, placement, level)
        starts.append(segment_of(begun, offer_of(begun)))


def _refused(state: State, field: str, value: object, rule: str) -> InvalidValueError:
    return InvalidValueError(f"policy {state.policy.name!r}", field, value, rule)
