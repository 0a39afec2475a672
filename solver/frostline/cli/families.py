"""The families of ``frostline generate``: shipped instances, made anew from their recipes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from frostline.cli.group import INFEASIBLE, UsageError
from frostline.cli.output import Output
from frostline.errors import FileError, UnknownNameError
from frostline.problem.files import digest, save
from frostline.traces.library import FAMILIES, instance_entry, instance_names, made_instance

__all__ = ["write_families"]


def write_families(wanted: str, folder: Path, stored: bool, given: Mapping[str, object], output: Output) -> int:
    """Write the instances of families to ``folder/name.json``; whether each is what was recorded, by its digest."""
    for option, value in given.items():
        if value is not None:
            raise UsageError(f"{option} does not go with --family, whose instances have recipes")
    if folder.exists() and not folder.is_dir():
        raise FileError(folder, "must be a folder")
    names = [name for name in _names(wanted) if not stored or instance_entry(name).file is not None]
    rows: list[dict[str, Any]] = []
    with output.progress("making", len(names)) as tell:
        for name in names:
            rows.append(_write(name, folder / f"{name}.json"))
            if tell is not None:
                tell(len(rows), len(names))
    other = [row["name"] for row in rows if not row["as_recorded"]]
    output.document({"instances": rows, "as_recorded": not other, "out": str(folder)})
    output.tell(*(f"{name} is not what was recorded: this numpy draws other numbers" for name in other))
    output.remark(f"{len(rows)} instances written to {folder}")
    return INFEASIBLE if other else 0


def _names(wanted: str) -> list[str]:
    families = [name for name in map(str.strip, wanted.split(",")) if name]
    for name in families:
        if name not in (*FAMILIES, "all"):
            raise UnknownNameError("family", name, (*FAMILIES, "all"))
    chosen = FAMILIES if "all" in families else families
    return [name for name in instance_names() if instance_entry(name).family in chosen]


def _write(name: str, path: Path) -> dict[str, Any]:
    instance = made_instance(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    save(instance, path)
    found = digest(instance)
    recorded = found == instance_entry(name).sha256
    return {"name": name, "jobs": len(instance.jobs), "sha256": found, "as_recorded": recorded, "file": str(path)}
