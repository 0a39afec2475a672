"""The networks that come with frostline, by name."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from frostline.errors import UnknownNameError
from frostline.problem.documents import parse_document
from frostline.problem.network import Network, network_from_dict

__all__ = ["shipped_network", "shipped_networks"]


@cache
def shipped_networks() -> tuple[str, ...]:
    """Names of the networks in ``frostline.models``, sorted."""
    names = (file.name for file in files("frostline.models").iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


@cache
def shipped_network(name: str) -> Network:
    """Network that comes with frostline.

    Raises
    ------
    UnknownNameError
        No such network.
    """
    if name not in shipped_networks():
        raise UnknownNameError("network", name, shipped_networks())
    file = files("frostline.models").joinpath(f"{name}.json")
    _, data = parse_document(file.read_text("utf-8"), ["network"], source=file.name)
    return network_from_dict({"format": "frostline/network", "version": 1, **data})
