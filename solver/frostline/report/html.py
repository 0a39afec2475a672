"""Pieces of HTML, from texts that are escaped here and nowhere else."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from html import escape

from frostline.report.picture_style import plain_text
from frostline.report.table import Table

__all__ = ["facts", "figure", "html_table", "items", "page", "section"]

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; }
h2 { margin-top: 2.5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: 0.5rem; }
th, td { text-align: right; padding: 0.2rem 0.7rem; border-bottom: 1px solid #8886; }
th:first-child, td:first-child, .facts th, .facts td { text-align: left; overflow-wrap: anywhere; }
.facts th { vertical-align: top; white-space: nowrap; font-weight: normal; }
figure { margin: 1.5rem 0; }
img { max-width: 100%; height: auto; background: white; }
"""


def text_of(text: str) -> str:
    """Text as it is written into a page.

    Examples
    --------
    >>> text_of('<a href="x">')
    '&lt;a href=&quot;x&quot;&gt;'
    """
    return escape(plain_text(text))


def page(title: str, lead: str, sections: Iterable[str]) -> str:
    """A page that needs nothing but itself: no script, no font, no picture from elsewhere."""
    shown = text_of(title)
    head = '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    head += f"<title>{shown}</title>\n<style>{_STYLE}</style>"
    body = "\n".join([f"<h1>{shown}</h1>", f"<p>{text_of(lead)}</p>", *sections])
    start = '<!DOCTYPE html>\n<html lang="en">'
    return f"{start}\n<head>\n{head}\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"


def section(title: str, *parts: str) -> str:
    """Parts under a heading; nothing where there are none."""
    return "\n".join([f"<section>\n<h2>{text_of(title)}</h2>", *parts, "</section>"]) if any(parts) else ""


def html_table(table: Table, caption: str) -> str:
    """A table with its header; the first cell of each row is the header of the row.

    Examples
    --------
    >>> print(html_table(Table(["policy", "valid"], [["a<b", "yes"]]), "Policies"))
    <div class="wide"><table>
    <caption>Policies</caption>
    <thead><tr><th scope="col">policy</th><th scope="col">valid</th></tr></thead>
    <tbody>
    <tr><th scope="row">a&lt;b</th><td>yes</td></tr>
    </tbody>
    </table></div>
    """
    head = "".join(f'<th scope="col">{text_of(name)}</th>' for name in table.header)
    rows = [
        f'<tr><th scope="row">{text_of(row[0])}</th>{"".join(f"<td>{text_of(cell)}</td>" for cell in row[1:])}</tr>'
        for row in table.rows
    ]
    lines = ['<div class="wide"><table>', f"<caption>{text_of(caption)}</caption>", f"<thead><tr>{head}</tr></thead>"]
    return "\n".join([*lines, "<tbody>", *rows, "</tbody>", "</table></div>"])


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Names and values, one a row; nothing where there are none."""
    lines = [f'<tr><th scope="row">{text_of(name)}</th><td>{text_of(value)}</td></tr>' for name, value in rows]
    return "\n".join(['<table class="facts">', "<tbody>", *lines, "</tbody>", "</table>"]) if lines else ""


def items(lines: Iterable[str]) -> str:
    """A list of sentences; nothing where there are none."""
    rows = [f"<li>{text_of(line)}</li>" for line in lines]
    return "\n".join(["<ul>", *rows, "</ul>"]) if rows else ""


def figure(png: bytes, caption: str) -> str:
    """A picture inside the page, with its caption, which also stands for it where it is not shown."""
    source, text = f"data:image/png;base64,{b64encode(png).decode('ascii')}", text_of(caption)
    return f'<figure>\n<img src="{source}" alt="{text}">\n<figcaption>{text}</figcaption>\n</figure>'
