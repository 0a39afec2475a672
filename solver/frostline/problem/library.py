"""The networks that come with frostline: JSON files of the data folder ``models``."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from frostline.errors import UnknownNameError
from frostline.problem.network import Network, network_from_dict

__all__ = ["network_names", "shipped_network"]


@cache
def network_names() -> tuple[str, ...]:
    """Names of the networks that come with frostline, sorted.

    Examples
    --------
    >>> network_names()[:3]
    ('bert_large', 'dlrm_kaggle', 'gpt2')
    """
    names = (file.name for file in (files("frostline") / "models").iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


@cache
def shipped_network(name: str) -> Network:
    """Network that comes with frostline.

    Parameters
    ----------
    name : str
        One of :func:`network_names`.

    Raises
    ------
    UnknownNameError
        No such network; a near miss is suggested.

    Examples
    --------
    >>> gpt2 = shipped_network("gpt2")
    >>> gpt2.params, len(gpt2.layers), gpt2.sample
    (124439808, 15, '1024 tokens')
    >>> shipped_network("bert_larg")
    Traceback (most recent call last):
    frostline.errors.UnknownNameError: unknown network 'bert_larg'; did you mean 'bert_large'? Known: bert_large, ...
    """
    if name not in network_names():
        raise UnknownNameError("network", str(name), network_names())
    text = (files("frostline") / "models" / f"{name}.json").read_text("utf-8")
    return network_from_dict(json.loads(text))
