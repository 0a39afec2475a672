"""Pages of the repository outside this folder, and links to its files.

A link to a page leads to its copy here, one to another file to a download; folders are named without a link.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
COPIES: Mapping[str, tuple[str, str]] = {
    "changelog": ("CHANGELOG.md", ""),
    "limits": ("README.md", "Limits"),
    "networks": ("models/README.md", ""),
    "policies": ("README.md", "Policies"),
    "proofs": ("proofs/README.md", ""),
    "theorems": ("proofs/theorems.md", ""),
}
"""File, and heading of the section that is wanted, by name of the page in the folder ``reference``."""

PAGES = {ROOT / "README.md": DOCS / "index.md"} | {
    ROOT / source: DOCS / "reference" / f"{name}.md" for name, (source, heading) in COPIES.items() if not heading
}


def pages() -> dict[str, str]:
    """Texts of the copies, by name."""
    return {name: _copy(*source) for name, source in COPIES.items()}


def _copy(source: str, heading: str) -> str:
    text = (ROOT / source).read_text("utf-8")
    if heading:
        text = re.search(rf"^#(# {heading}\n.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)[1]
    return relinked(text, (ROOT / source).parent, DOCS / "reference")


def relinked(text: str, home: Path, place: Path) -> str:
    """Text of a page that belongs into one folder, for another one."""

    def link(found: re.Match[str]) -> str:
        words, path, anchor = found[1], found[2], found[3] or ""
        target = Path(os.path.normpath(home / path))
        if target.is_dir():
            return words
        if not target.is_file():
            return found[0]
        return f"[{words}]({os.path.relpath(PAGES.get(target, target), place)}{anchor})"

    return re.sub(r"\[([^\[\]]+)\]\(([\w./]+)(#[\w-]*)?\)", link, text)


def relink(app: Sphinx, page: str, source: list[str]) -> None:
    """Mend the links of a page of this folder."""
    if "/" not in page:
        source[0] = relinked(source[0], DOCS, DOCS)


def setup(app: Sphinx) -> dict[str, Any]:
    """Extension of Sphinx."""
    app.connect("source-read", relink)
    return {"parallel_read_safe": True}
