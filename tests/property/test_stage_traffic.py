"""What the reports say crosses between servers is what the timing says."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from frostline.problem import Placement
from frostline.report.plot_placement import server_traffic
from frostline.report.stage_traffic import stage_traffic
from frostline.testing import stage_graphs
from frostline.timing.iteration_time import cut_bytes


@given(st.data())
def test_pairs_rings_and_servers_each_add_up_to_the_cut(data):
    graph = data.draw(stage_graphs())
    servers = data.draw(st.integers(1, 4))
    columns = [[0] * graph.stages for _ in range(servers)]
    for stage, count in enumerate(graph.replicas):
        for _ in range(count):
            columns[data.draw(st.integers(0, servers - 1))][stage] += 1
    placement = Placement(enumerate(columns))
    found = stage_traffic(graph, placement)
    assert math.ceil(sum(item.cut for item in found)) == cut_bytes(graph, placement)
    assert math.ceil(sum(server_traffic(graph, placement).values())) == cut_bytes(graph, placement)
    assert all(0 <= item.cut <= item.total for item in found)
    if len(placement.servers) == 1:
        assert not any(item.cut for item in found)
