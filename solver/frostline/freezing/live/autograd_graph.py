"""Places in an autograd graph that every path from the first parameters to the loss crosses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge

from frostline.freezing.live.batches import Batch, Loss, loss_of, outputs_of, tensors_in, untouched, with_tensors

__all__ = ["Cut", "ForwardRecord", "ModuleEnd", "record_forward"]

Edge = tuple[Any, int]
"""Node of an autograd graph, and which of its outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleEnd:
    """End of a module's call in a forward pass.

    Parameters
    ----------
    module : str
        Name of the module.
    order : int
        Place among the ends of all calls.
    edges : frozenset of (node, int)
        Where the gradients of its outputs arrive.
    """

    module: str
    order: int
    edges: frozenset[Edge]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Place that every path from the inputs to the loss crosses.

    Parameters
    ----------
    end : ModuleEnd
        The module that ends there.
    before : frozenset of nodes
        What its outputs depend on.
    """

    end: ModuleEnd
    before: frozenset[Any]

    def follows(self, other: Cut) -> bool:
        """Whether its outputs depend on those of another one."""
        return all(node in self.before for node, _ in other.end.edges)


@dataclass(slots=True)
class ForwardRecord:
    """Ends of the modules in one forward pass, and the autograd graph of its loss.

    Parameters
    ----------
    ends : list of ModuleEnd
        Ends, in order.
    loss : (node, int)
        Where the gradient of the loss arrives.
    source : node, optional
        Where the gradients of all inputs end, if they can have any.
    """

    ends: list[ModuleEnd] = field(default_factory=list)
    loss: Edge = (None, 0)
    source: Any = None

    def last_order(self, module: str) -> int | None:
        """Place of the last call of a module; None if it was not called."""
        return max((end.order for end in self.ends if end.module == module), default=None)

    def places(self) -> dict[str, ModuleEnd]:
        """Where the outputs of each module that was called once are made: in it or, if it passes them on, before it.

        Of modules inside each other that end at the same place it is the outermost.
        """
        calls = Counter(end.module for end in self.ends)
        once = [end for end in self.ends if calls[end.module] == 1 and end.edges]
        made: dict[frozenset[Edge], ModuleEnd] = {}
        for end in once:
            first = made.setdefault(end.edges, end)
            if first.module.startswith(f"{end.module}."):
                made[end.edges] = end
        return {end.module: made[end.edges] for end in once}

    def cut(self, end: ModuleEnd) -> Cut | None:
        """Cut at the end of a module: what comes after it depends on what comes before it by its outputs only.

        None if there is another way, such as a parameter that serves on both sides, or parameters on one side only.
        """
        before = frozenset(_reached(end.edges))
        after = _reached([self.loss], end.edges)
        whole = self.source is None or self.source in before
        if whole and before.isdisjoint(after) and _parameters(before) and _parameters(after):
            return Cut(end=end, before=before)
        return None

    def cuts(self) -> list[Cut]:
        """Longest chain of cuts that follow each other."""
        places = sorted(set(self.places().values()), key=lambda end: end.order)
        found = [cut for end in places if (cut := self.cut(end))]
        chains: list[list[Cut]] = []
        for cut in found:
            leading = (chain for chain in chains if cut.follows(chain[-1]))
            chains.append([*max(leading, key=len, default=[]), cut])
        return max(chains, key=len, default=[])

    def parameters(self, cuts: Sequence[Cut]) -> list[list[Tensor]]:
        """Parameters before the first cut, between cuts, and after the last one."""
        roots: list[Collection[Edge]] = [*(cut.end.edges for cut in cuts), [self.loss]]
        limits: list[Collection[Edge]] = [(), *(cut.end.edges for cut in cuts)]
        return [_parameters(_reached(root, limit)) for root, limit in zip(roots, limits, strict=True)]


def record_forward(model: nn.Module, batch: Batch, loss: Loss) -> ForwardRecord:
    """Forward pass of a model in training mode, with gradients for all its parameters and its inputs; leaves no trace.

    All inputs depend on one number, the source, since paths that start at them have to cross, too.
    """
    record = ForwardRecord()
    source = torch.zeros((), requires_grad=True)

    def sourced(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            return tensor
        record.source = _edge(source)[0]
        return tensor.detach() + source.to(tensor)

    def hook(name: str) -> Any:
        def end(module: nn.Module, inputs: Any, outputs: Any) -> None:
            edges = frozenset(_edge(tensor) for tensor in tensors_in(outputs) if tensor.requires_grad)
            record.ends.append(ModuleEnd(module=name, order=len(record.ends), edges=edges))

        return end

    with untouched(model):
        for parameter in model.parameters():
            parameter.requires_grad_(parameter.is_floating_point())
        handles = [module.register_forward_hook(hook(name)) for name, module in model.named_modules() if name]
        try:
            record.loss = _edge(loss_of(loss, outputs_of(model, with_tensors(batch[0], sourced)), batch[1]))
        finally:
            for handle in handles:
                handle.remove()
    return record


def _edge(tensor: Tensor) -> Edge:
    edge = get_gradient_edge(tensor)
    return edge.node, edge.output_nr


def _reached(roots: Iterable[Edge], limits: Collection[Edge] = ()) -> set[Any]:
    """Nodes reached from edges without passing any of the limits."""
    pending = [node for node, output in roots if (node, output) not in limits]
    found = set(pending)
    while pending:
        for node, output in pending.pop().next_functions:
            if node is not None and node not in found and (node, output) not in limits:
                found.add(node)
                pending.append(node)
    return found


def _parameters(nodes: Iterable[Any]) -> list[Tensor]:
    """Parameters whose gradients nodes gather."""
    leaves = (getattr(node, "variable", None) for node in nodes)
    return [leaf for leaf in leaves if isinstance(leaf, nn.Parameter)]
