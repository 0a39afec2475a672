"""Plot of a placement: servers × GPUs coloured by stage, and what crosses between servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frostline.placement.result import PlacementResult
from frostline.problem.cluster import Cluster
from frostline.problem.placement import Placement
from frostline.report.numbers import bytes_text
from frostline.report.picture import check_plot, new_figure, write_figure
from frostline.report.placement_drawing import gpu_cells, servers_to_draw
from frostline.timing.stage_graph import StageGraph

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_placement", "save_plot", "server_traffic"]

_BUSY, _FREE, _EDGE = "0.75", "white", "0.25"
_WIDEST_LINE = 6.0


def plot_placement(
    result: PlacementResult,
    graph: StageGraph,
    cluster: Cluster,
    free: Sequence[int] | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Plot servers as rows of GPUs coloured by the stage they hold, with arcs for the bytes between servers.

    Parameters
    ----------
    result : PlacementResult
        The placement.
    graph : StageGraph
        The stages.
    cluster : Cluster
        The servers; where there are many, only those that hold replicas are drawn.
    free : sequence of int, shape (servers,), optional
        GPUs of each server that were free before; all by default.
    ax : Axes, optional
        Where to plot; a new figure by default.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    """
    shown = servers_to_draw(result.placement, cluster)
    widest = max(cluster.servers[m].gpus for m in shown)
    axes = _figure(result, cluster).add_subplot() if ax is None else ax
    room = cluster.capacities if free is None else free
    for row, server in enumerate(shown):
        _draw_server(axes, row, gpu_cells(result.placement, cluster, room, server), graph)
    traffic = server_traffic(graph, result.placement)
    _draw_traffic(axes, traffic, {m: row for row, m in enumerate(shown)}, widest)
    _label(axes, result, [cluster.servers[m].id for m in shown], widest)
    _legend(axes, graph, max(traffic.values(), default=None))
    return axes


def save_plot(
    path: Path, result: PlacementResult, graph: StageGraph, cluster: Cluster, free: Sequence[int] | None = None
) -> None:
    """Write :func:`plot_placement` to a file, in the format that its ending names; the whole file or none.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    FileError
        The ending is not .png, .pdf or .svg, or the file cannot be written.
    """
    check_plot(path)
    figure = _figure(result, cluster)
    plot_placement(result, graph, cluster, free, ax=figure.add_subplot())
    write_figure(path, figure)


def server_traffic(graph: StageGraph, placement: Placement) -> dict[tuple[int, int], Fraction]:
    """Bytes per iteration between pairs of servers, lower index first: pairs of stages, and rings by server index.

    A ring visits the servers that hold its stage in the order of their indices and returns to the first; on two
    servers both of its links join the same pair.

    Examples
    --------
    >>> graph = StageGraph(replicas=[2, 1], compute_s=[0, 0], gradient_bytes=[8, 8], edges={(0, 1): 6})
    >>> server_traffic(graph, Placement([(0, (1, 1)), (2, (1, 0))]))
    {(0, 2): Fraction(19, 1)}
    """
    found: dict[tuple[int, int], Fraction] = {}
    for pair, amount in (*_pairs(graph, placement), *_rings(graph, placement)):
        found[pair] = found.get(pair, Fraction(0)) + amount
    return {pair: amount for pair, amount in sorted(found.items()) if amount}


def _figure(result: PlacementResult, cluster: Cluster) -> Figure:
    shown = servers_to_draw(result.placement, cluster)
    widest = max(cluster.servers[m].gpus for m in shown)
    return new_figure(3 + 0.5 * widest, 2 + 0.45 * len(shown))


def _pairs(graph: StageGraph, placement: Placement) -> Iterator[tuple[tuple[int, int], Fraction]]:
    for (m, here), (n, there) in combinations(placement.columns, 2):
        for (s, t), amount in graph.traffic.items():
            links = here[s] * there[t] + here[t] * there[s]
            yield (m, n), Fraction(amount * links, graph.replicas[s] * graph.replicas[t])


def _rings(graph: StageGraph, placement: Placement) -> Iterator[tuple[tuple[int, int], Fraction]]:
    for s, ring in enumerate(graph.ring_bytes):
        holders = [m for m, column in placement.columns if column[s]]
        if len(holders) > 1:
            for m, n in zip(holders, [*holders[1:], holders[0]], strict=True):
                yield (min(m, n), max(m, n)), ring


def _colour(stage: int, stages: int) -> Any:
    from matplotlib import colormaps

    return colormaps["tab10"](stage) if stages <= 10 else colormaps["turbo"]((stage + 0.5) / stages)


def _draw_server(axes: Axes, row: int, cells: Sequence[tuple[int | None, int]], graph: StageGraph) -> None:
    from matplotlib.patches import Rectangle

    left = 0
    for stage, gpus in cells:
        width = max(gpus, 1)
        fill = ((_BUSY, _FREE)[gpus]) if stage is None else _colour(stage, graph.stages)
        hatch = "///" if stage is None and not gpus else None
        box = Rectangle((left + 0.06, row - 0.4), width - 0.12, 0.8, facecolor=fill, edgecolor=_EDGE, hatch=hatch)
        axes.add_patch(box)
        left += width


def _draw_traffic(axes: Axes, traffic: dict[tuple[int, int], Fraction], rows: dict[int, int], widest: int) -> None:
    from matplotlib.patches import FancyArrowPatch

    heaviest = max(traffic.values(), default=Fraction(1))
    for (m, n), amount in traffic.items():
        span = rows[n] - rows[m]
        arc = FancyArrowPatch(
            (widest + 0.2, rows[m]),
            (widest + 0.2, rows[n]),
            arrowstyle="-",
            connectionstyle=f"arc3,rad={-0.6 / span**0.5:.3f}",
            linewidth=max(0.5, _WIDEST_LINE * float(amount / heaviest)),
            color=_EDGE,
            alpha=0.6,
        )
        axes.add_patch(arc)


def _label(axes: Axes, result: PlacementResult, servers: Sequence[str], widest: int) -> None:
    proved = "proved optimal" if result.status.proved_optimal else f"gap {100 * result.gap:.3g} %"
    axes.set_title(
        f"{1000 * result.seconds:.6g} ms per iteration ({proved}), {bytes_text(result.cut_bytes)} between servers"
    )
    axes.set_xlabel("GPU")
    axes.set_ylabel("server")
    axes.set_xlim(-0.2, widest + 0.4 * widest**0.5 + 1.5)
    axes.set_ylim(len(servers) - 0.4, -0.6)
    axes.set_xticks([gpu + 0.5 for gpu in range(widest)], [str(gpu) for gpu in range(widest)])
    axes.set_yticks(range(len(servers)), servers)


def _legend(axes: Axes, graph: StageGraph, heaviest: Fraction | None) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        *(Patch(facecolor=_colour(s, graph.stages), label=f"stage {name}") for s, name in enumerate(graph.names)),
        Patch(facecolor=_FREE, edgecolor=_EDGE, label="free"),
        Patch(facecolor=_BUSY, edgecolor=_EDGE, hatch="///", label="busy"),
    ]
    if heaviest is not None:
        text = f"{bytes_text(float(heaviest))} per iteration"
        handles.append(Line2D([], [], color=_EDGE, alpha=0.6, linewidth=_WIDEST_LINE, label=text))
    axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
