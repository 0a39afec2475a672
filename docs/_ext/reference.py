"""Writes the pages of the folder ``reference``: the command line, the public modules, copies from the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import api
import commands
import repository
from sphinx.application import Sphinx


def write_pages(app: Sphinx) -> None:
    """Write the pages that are not there as they should be, and remove those of what is gone."""
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    modules = {f"{name}.rst": api.page(name) for name in api.public_modules()}
    copies = {f"{name}.md": text for name, text in repository.pages().items()}
    pages = {folder / name: text for name, text in {"command_line.rst": commands.page(), **modules, **copies}.items()}
    for path, text in pages.items():
        if not path.is_file() or path.read_text("utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in set(folder.iterdir()) - set(pages):
        path.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    """Extension of Sphinx."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}
