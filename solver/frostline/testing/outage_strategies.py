"""Hypothesis strategies for outages of servers, and for jobs that save their state."""

from __future__ import annotations

from hypothesis import strategies as st

from frostline.problem.cluster import Cluster
from frostline.problem.instance import Instance
from frostline.problem.outage import Outage
from frostline.testing.strategies import durations_s, instants_s
from frostline.units import instant_us, seconds

__all__ = ["checkpointed", "outages"]


@st.composite
def outages(
    draw: st.DrawFn, cluster: Cluster, *, max_outages: int = 4, max_s: int = 40, for_good: bool = False
) -> tuple[Outage, ...]:
    """Outages of the servers of a cluster, by start.

    Parameters
    ----------
    cluster : Cluster
        The servers, at least one.
    max_outages : int
        Most outages; there may be none.
    max_s : int
        When the last one begins at the latest, in seconds.
    for_good : bool
        Whether servers may never come back.
    """
    ends_us: dict[str, int | None] = {}
    found: list[Outage] = []
    for start_s in sorted(draw(st.lists(instants_s(max_s), max_size=max_outages))):
        server = draw(st.sampled_from(cluster.servers)).id
        end_us = ends_us.get(server, -1)
        if end_us is None or instant_us(start_s) < end_us:
            continue
        lasts_s = draw(durations_s(20) | st.none() if for_good else durations_s(20))
        end_s = None if lasts_s is None else seconds(instant_us(start_s + lasts_s))
        found.append(Outage(server=server, start_s=start_s, end_s=end_s))
        ends_us[server] = found[-1].end_us
    return tuple(found)


@st.composite
def checkpointed(draw: st.DrawFn, instance: Instance) -> Instance:
    """The instance, with some jobs that save their state after every few seconds of work."""
    every_s = st.none() | durations_s(5)
    return instance.replace(jobs=[job.replace(checkpoint_s=draw(every_s)) for job in instance.jobs])
