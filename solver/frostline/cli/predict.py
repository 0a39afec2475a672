"""``frostline predict``: what models of job sizes would have said of every job of a trace when it was submitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from frostline.cli.inputs import CSV_ENDINGS, Reading, Workload, read_workload
from frostline.cli.options import (
    ConfigOption,
    DuplicatesOption,
    FormatOption,
    FractionsOption,
    JobsOption,
    JsonOption,
    ModeOption,
    QuietOption,
    SeedOption,
    TimeUnitOption,
    ZoneOption,
    examples,
    mode_of,
)
from frostline.cli.output import Output
from frostline.errors import InvalidValueError
from frostline.prediction import ReplayResult, SizeModel, make_model, replay
from frostline.problem.documents import check_ending, write_text
from frostline.problem.job import Fixed
from frostline.report.picture import check_plot
from frostline.report.plot_calibration import save_calibration
from frostline.report.prediction import (
    finish_text,
    predictions_csv,
    replay_lines,
    replay_summary,
    replay_table,
    size_unit,
)
from frostline.report.workload import trace_lines
from frostline.timing.duration import fastest_us
from frostline.units import as_int, seconds

__all__ = ["EXAMPLES", "parse_models", "run"]

EXAMPLES = examples(
    "predict philly.csv --model forest,last-finished,median",
    "predict trace.csv --repair --model combined,ewma:alpha=0.5 --jobs 10000 --plot calibration.png",
    "predict philly-like-5000 --model combined --json --out predictions.csv.gz",
)


def run(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="Trace file, or instance file or name.")],
    model: Annotated[
        str,
        typer.Option(
            "--model", metavar="A,B,...", help="Models such as combined, forest or median; parameters follow colons."
        ),
    ] = "combined,last-finished,median,global-median",
    strict: ModeOption = None,
    trace_format: FormatOption = None,
    time_unit: TimeUnitOption = None,
    zone: ZoneOption = None,
    duplicates: DuplicatesOption = None,
    fractions: FractionsOption = None,
    jobs: JobsOption = None,
    seed: SeedOption = 0,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Picture of the calibration: *.png, *.pdf or *.svg."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write every prediction here: *.csv or *.csv.gz.")
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    config: ConfigOption = None,
) -> int:
    """Replay a trace: each model predicts every job when it is submitted, from the jobs that have finished by then."""
    output = Output(command="predict", as_json=json, quiet=quiet)
    models = parse_models(model, as_int(seed, "option --seed", "seed", 0))
    if plot is not None:
        check_plot(plot)
    if out is not None:
        check_ending(out, CSV_ENDINGS)
    reading = Reading(
        format=trace_format,
        mode=mode_of(strict),
        time_unit=time_unit,
        zone=zone,
        duplicates=duplicates,
        fractions=fractions,
        jobs=jobs,
    )
    workload = read_workload(trace, None, None, reading)
    setting = _setting(workload, output)
    results = _results(models, workload, output)
    if plot is not None:
        save_calibration(plot, results, unit=setting["unit"])
    if out is not None:
        write_text(out, predictions_csv(results, workload.jobs), CSV_ENDINGS)
    rows = [replay_summary(text, result) for text, result in results.items()]
    output.document({**setting, "results": rows})
    output.table(replay_table(rows))
    output.remark(*replay_lines())
    output.remark(*(f"written to {path}" for path in (plot, out) if path is not None))
    return 0


def parse_models(text: str, seed: int = 0) -> dict[str, SizeModel]:
    """Models by the text that asks for each; the seed goes to those that draw at random.

    Raises
    ------
    UnknownNameError, InvalidValueError
        A model is unknown or named twice, or its parameters are bad.

    Examples
    --------
    >>> [model.name for model in parse_models("median, ewma:alpha=0.5").values()]
    ['median', 'ewma']
    """
    models: dict[str, SizeModel] = {}
    for part in map(str.strip, text.split(",")):
        if part in models:
            raise InvalidValueError("option --model", "model", part, "is named twice")
        models[part] = make_model(part, seed=seed)
    return models


def _setting(workload: Workload, output: Output) -> dict[str, Any]:
    """What is replayed, as the first members of the JSON object, and as remarks."""
    trace, jobs, known = workload.summary, len(workload.jobs), len(workload.start_s)
    output.remark(workload.name or "instance", *trace_lines(trace), finish_text(known, jobs))
    return {
        "trace": trace,
        "finishing_times": {"starts_known": known, "releases_taken_as_starts": jobs - known},
        "unit": size_unit(workload.jobs),
    }


def _results(models: Mapping[str, SizeModel], workload: Workload, output: Output) -> dict[str, ReplayResult]:
    duration_s = _durations_s(workload)
    results = {}
    for text, model in models.items():
        with output.progress(text, len(workload.jobs)) as on_progress:
            (results[text],) = replay(
                workload.jobs,
                [model],
                start_s=workload.start_s,
                duration_s=duration_s,
                on_progress=None if on_progress is None else partial(_tell, on_progress),
            )
    return results


def _tell(on_progress: Callable[[int, int], None], model: str, done: int, total: int) -> None:
    on_progress(done, total)


def _durations_s(workload: Workload) -> dict[str, float]:
    """Shortest durations on the cluster of jobs whose duration depends on where they run."""
    cluster = workload.cluster
    if cluster is None:
        return {}
    return {job.id: seconds(fastest_us(job, cluster)) for job in workload.jobs if not isinstance(job.work, Fixed)}
