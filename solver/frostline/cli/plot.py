"""``frostline plot``: pictures of schedules, or one HTML report on a simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from frostline.cli.options import ConfigOption, InstanceOption, JsonOption, QuietOption, examples
from frostline.cli.output import Output
from frostline.cli.plot_inputs import Runs, read_runs
from frostline.errors import FileError, InvalidValueError
from frostline.report.picture import check_plot
from frostline.report.pictures import PLOT_KINDS, check_kinds, save_plots
from frostline.report.report_page import html_report, save_report

__all__ = ["EXAMPLES", "run"]

EXAMPLES = examples(
    "plot run/ --out report.html",
    "plot run/ --out flow.png --kind flow,usage --policy fifo",
    "plot run/schedule-fifo.json.gz --kind gantt --out gantt.svg",
    "plot mine.json --instance run/instance.json.gz --out mine.pdf",
)

_HTML, _ENDINGS = ".html", (".png", ".svg", ".pdf", ".html")
_OF_PICTURES = ("compare", "flow", "usage")


def run(
    what: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE|FOLDER...", help="Folders that simulate --out wrote, or schedules of one instance."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="Picture, *.png, *.svg or *.pdf, or report, *.html, to write."),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="A,B,...",
            help=f"Kinds of pictures: {', '.join(PLOT_KINDS)}; by default all in a report, all but gantt in a picture.",
        ),
    ] = None,
    policy: Annotated[
        str | None, typer.Option("--policy", metavar="A,B,...", help="Schedules to draw, by name; by default all.")
    ] = None,
    instance: InstanceOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    config: ConfigOption = None,
) -> int:
    """Draw schedules, or write one HTML file that reports on a simulation."""
    output = Output(command="plot", as_json=json, quiet=quiet)
    as_page = _is_page(out)
    default = tuple(PLOT_KINDS) if as_page else _OF_PICTURES
    kinds = default if kind is None else check_kinds([part.strip() for part in kind.split(",")])
    runs = read_runs(what, instance, None if policy is None else _names(policy))
    _write(out, runs, kinds, as_page)
    policies = list(runs.schedules)
    output.document({"files": [str(out)], "kinds": list(kinds), "policies": policies, "instance": runs.instance.name})
    output.remark(f"{', '.join(kinds)} of {', '.join(policies)}")
    output.tell(f"written to {out}")
    return 0


def _is_page(out: Path) -> bool:
    """Whether a report is asked for; an error for endings that nothing is written to, and without matplotlib."""
    ending = out.suffix.lower()
    if ending not in _ENDINGS:
        raise FileError(out, f"must end in {', '.join(_ENDINGS[:-1])} or {_ENDINGS[-1]}")
    check_plot(out.with_suffix(".png"))
    return ending == _HTML


def _names(policy: str) -> list[str]:
    names = [part.strip() for part in policy.split(",")]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InvalidValueError("option --policy", "policy", name, "is named twice")
    return names


def _write(out: Path, runs: Runs, kinds: tuple[str, ...], as_page: bool) -> None:
    if not as_page:
        save_plots(out, runs.schedules, runs.rows, kinds)
        return
    text = html_report(runs.instance, runs.schedules, runs.rows, kinds=kinds, trace=runs.trace, sources=runs.sources)
    save_report(out, text)
