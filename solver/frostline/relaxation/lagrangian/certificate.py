"""Certificates of lower bounds: plain JSON documents that :func:`frostline.certify.check_certificate` verifies."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from frostline.relaxation.lagrangian.prices import Evaluation, Prices
from frostline.relaxation.lagrangian.problem import PriceProblem
from frostline.relaxation.lagrangian.tree import Node, Split, Tighten, Tree
from frostline.relaxation.lagrangian.windows import NEVER

__all__ = ["certificate_of"]


def certificate_of(
    problem: PriceProblem, proof: Evaluation | Tree | Literal["pointwise"], bound: int = 0
) -> dict[str, Any]:
    """Certificate of a bound.

    Parameters
    ----------
    problem : PriceProblem
        The problem that the bound is for.
    proof : Evaluation, Tree or "pointwise"
        Prices, a tree, or that the pointwise bound is to be computed again.
    bound : int
        The bound in ticks; that of prices and trees is their own.

    Returns
    -------
    dict
        Document of the format ``frostline/certificate``; times of prices are in ticks.

    Examples
    --------
    >>> from frostline.relaxation.lagrangian import best_prices
    >>> problem = PriceProblem.of_rows(1, [(0, [(1, length, 0)]) for length in (1, 2, 3)])
    >>> document = certificate_of(problem, best_prices(problem).best)
    >>> document["bound"], document["problem"]["duration"], [leaf["by"] for leaf in document["proof"]]
    (10, [1, 2, 3], ['gpu'])
    """
    nodes: str | list[object]
    stated = problem.document
    if isinstance(proof, Evaluation):
        nodes, bound = [_leaf(problem, proof.prices)], proof.bound
    elif isinstance(proof, Tree):
        nodes, bound = [_node(problem, node) for node in proof.nodes], proof.bound
        stated |= {"weight": "last"} if proof.last_only else {}
    else:
        nodes = proof
    content = {
        "format": "frostline/certificate",
        "version": 1,
        "problem": stated,
        "bound": bound,
        "proof": nodes,
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return {**content, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def _node(problem: PriceProblem, node: Node) -> object:
    origin = problem.origin
    if isinstance(node, Split):
        return [node.job, node.at + origin]
    if isinstance(node, Tighten):
        windows = [[job, low + origin, None if high == NEVER else high + origin] for job, low, high in node.windows]
        return {**_leaf(problem, node.prices), "windows": windows}
    return "empty" if node.prices is None else _leaf(problem, node.prices)


def _leaf(problem: PriceProblem, prices: Prices) -> dict[str, object]:
    rows = prices.numerators[None, :] if prices.pooled else prices.numerators
    return {
        "by": prices.by,
        "denominator": prices.denominator,
        "times": (prices.times + problem.origin).tolist(),
        "prices": rows.tolist(),
    }
