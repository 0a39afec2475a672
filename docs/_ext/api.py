"""A page for each public module: what its ``__all__`` names, from the docstrings.

What several modules export has its entry on the page of the innermost package that holds it; tables and references
lead there, by whatever name they call it. References to what is internal have no link; to what does not exist, none.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from inspect import isclass, unwrap
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from docutils.nodes import Element
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.autodoc.mock import mock
from sphinx.pycode import ModuleAnalyzer

import frostline

MODULES = ("errors", "policies.guarantee", "policies.waiting", "status", "units")
"""Public modules beside the packages."""

WITHOUT = "frostline.cli"
"""What has a page of its own."""


class Entry(NamedTuple):
    """A public name: the module that exports it, the directive for it, where it is defined, and its docstring."""

    module: str
    name: str
    directive: str
    defined: str
    docs: list[str]

    @property
    def target(self) -> str:
        """Name under which it is documented."""
        return f"{self.module}.{self.name}"

    @property
    def rank(self) -> tuple[bool, int]:
        """The greater, the better its page is for it."""
        return self.defined.startswith(f"{self.module}."), self.module.count(".")


@cache
def public_modules() -> Mapping[str, ModuleType]:
    """The root, public packages and public modules, sorted."""
    packages = {module.name for module in _below(frostline) if module.ispkg}
    names = {"frostline"} | packages | {f"frostline.{name}" for name in MODULES}
    with mock(["torch"]):
        return {name: import_module(name) for name in sorted(names)}


@cache
def entries() -> Mapping[str, Entry]:
    """Entry of every public name, by the name under which a module exports it."""
    exported = {
        f"{name}.{public}": _entry(module, public)
        for name, module in public_modules().items()
        for public in module.__all__
    }
    best = {entry.defined: entry for entry in sorted(exported.values(), key=lambda entry: entry.rank)}
    return {name: best[entry.defined] for name, entry in exported.items()}


def _entry(module: ModuleType, public: str) -> Entry:
    thing = getattr(module, public)
    plain = unwrap(thing) if callable(thing) else thing
    if isclass(plain) or isinstance(plain, FunctionType):
        directive = "autoclass" if isclass(plain) else "autofunction"
        defined, docs = f"{plain.__module__}.{plain.__qualname__}", (plain.__doc__ or "").splitlines()
        return Entry(module.__name__, public, directive, defined, docs)
    defined, docs = _constants().get((public, id(thing)), (f"{module.__name__}.{public}", []))
    return Entry(module.__name__, public, "py:data", defined, docs + _keys(thing))


def _keys(thing: object) -> list[str]:
    """Line that tells the keys of a table and the members of a tuple."""
    keys = list(thing) if isinstance(thing, Mapping | tuple) else []
    return [", ".join(f"``{key}``" for key in keys) + "."] if keys else []


@cache
def _constants() -> Mapping[tuple[str, int], tuple[str, list[str]]]:
    """Documented values of all modules, by name and identity: where they are defined, and their docstrings."""
    found: dict[tuple[str, int], tuple[str, list[str]]] = {}
    for name in (module.name for module in _below(frostline)):
        for (within, constant), docs in ModuleAnalyzer.for_module(name).find_attr_docs().items():
            if not within:
                found[constant, id(_found(f"{name}.{constant}"))] = (f"{name}.{constant}", docs)
    return found


def _below(package: ModuleType) -> Iterator[pkgutil.ModuleInfo]:
    """Modules of a package, at any depth."""
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if module.name != WITHOUT:
            yield module
            if module.ispkg:
                with mock(["torch"]):
                    package = import_module(module.name)
                yield from _below(package)


def _found(name: str) -> object | None:
    """What has a dotted name, as long a part of which as possible is the module; None where nothing has."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        with mock(["torch"]):
            try:
                thing = import_module(".".join(parts[:length]))
                for part in parts[length:]:
                    thing = getattr(thing, part)
            except (ImportError, AttributeError):
                continue
        return thing
    return None


def page(name: str) -> str:
    """Page of one public module."""
    found = {public: entries()[f"{name}.{public}"] for public in public_modules()[name].__all__}
    lines = [name, "=" * len(name), "", f".. automodule:: {name}", "   :no-members:", ""]
    lines += [".. list-table::", "   :widths: 1 3", ""]
    for public, entry in found.items():
        lines += [f"   * - :py:obj:`{public} <{entry.target}>`", f"     - {_summary(entry.docs)}"]
    for entry in found.values():
        if entry.module == name:
            lines += ["", f".. {entry.directive}:: {entry.name}"]
            lines += ["", *(f"   {line}".rstrip() for line in entry.docs)] if entry.directive == "py:data" else []
    return "\n".join([*lines, ""])


def _summary(docs: list[str]) -> str:
    """First sentence of a docstring."""
    paragraph = " ".join("\n".join(docs).partition("\n\n")[0].split())
    return re.split(r"(?<=\.)\s", paragraph)[0]


@cache
def _aliases() -> Mapping[str, str]:
    """Name under which something is documented, by any other that it has."""
    defined = {entry.defined: entry.target for entry in entries().values()}
    return defined | {name: entry.target for name, entry in entries().items()}


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: Element) -> Element | None:
    """Lead a reference to where its target, or else what it belongs to, is documented."""
    name = str(node.get("reftarget"))
    if node.get("refdomain") != "py" or not name.startswith("frostline.") or _found(name) is None:
        return None
    owner, rest = name, ""
    while "." in owner and owner not in _aliases():
        owner, _, last = owner.rpartition(".")
        rest = f".{last}{rest}"
    for target in (f"{_aliases().get(owner)}{rest}", _aliases().get(owner, "")):
        link = env.domains.python_domain.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, content)
        if link is not None:
            return link
    return content


def skip(app: Sphinx, what: str, name: str, thing: object, skipped: bool, options: object) -> bool | None:
    """Leave out what scikit-learn and named tuples put into classes."""
    field = str(getattr(thing, "__doc__", "")).startswith("Alias for field number")
    return True if field or re.fullmatch(r"set_\w+_request", name) else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Extension of Sphinx."""
    app.connect("missing-reference", resolve)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
