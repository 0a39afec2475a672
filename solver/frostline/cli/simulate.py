"""``frostline simulate``: run an instance or a trace under policies, check every schedule, compare with a bound."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from frostline.cli.inputs import Reading, Workload, read_instance
from frostline.cli.options import (
    ClusterOption,
    ConfigOption,
    DuplicatesOption,
    FormatOption,
    FractionsOption,
    JobsOption,
    JsonOption,
    LoadOption,
    LocalityOption,
    ModeOption,
    PoolOption,
    QuietOption,
    TimeUnitOption,
    ZoneOption,
    examples,
    mode_of,
    number,
    whole_number,
)
from frostline.cli.output import Output, json_text
from frostline.errors import FileError, InvalidValueError
from frostline.policies import Policy, make_policy
from frostline.prediction import OnlinePredictor, make_model
from frostline.problem import Elastic, Instance, Outage
from frostline.problem.documents import file_problem, write_text
from frostline.problem.files import save
from frostline.problem.refusal import never_fits
from frostline.relaxation import Bound, lower_bound
from frostline.report.simulation import (
    accuracy_text,
    bound_text,
    guarantee_text,
    jobs_text,
    outage_text,
    passed,
    prediction_text,
    result_summary,
    result_table,
)
from frostline.report.workload import cluster_summary, refusal_summary, refusal_text, trace_lines
from frostline.simulation import ENGINES, Result, choices_made, simulate
from frostline.timing import Choices
from frostline.traces import read_outages
from frostline.units import as_finite, as_int
from frostline.verify import check_schedule

__all__ = ["EXAMPLES", "file_name", "parse_policies", "run"]

EXAMPLES = examples(
    "simulate philly.csv --cluster 128x8 --policy asrpt,fifo,sjf --out run/",
    "simulate run/instance.json.gz --policy sjf:discipline=strict,easy --json",
    "simulate trace.csv --pool 64 --repair --time-unit min --load 0.9 --policy asrpt",
    "simulate philly.csv --cluster 50x8 --policy asrpt,sjf,las:restart_s=60 --predict combined",
    "simulate philly.csv --cluster 50x8 --policy asrpt --outages outages.csv --checkpoint 1800",
    "simulate philly.csv --cluster 50x8 --policy sjf,asrpt --engine auto",
)

_EXACT = "exact"
_UNSAFE = re.compile(r"[^A-Za-z0-9._=-]+")


def run(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="Trace file, or instance file or name.")],
    policy: Annotated[str, typer.Option("--policy", metavar="A,B,...", help="Policies; parameters follow colons.")],
    cluster: ClusterOption = None,
    pool: PoolOption = None,
    strict: ModeOption = None,
    trace_format: FormatOption = None,
    time_unit: TimeUnitOption = None,
    zone: ZoneOption = None,
    duplicates: DuplicatesOption = None,
    fractions: FractionsOption = None,
    locality: LocalityOption = None,
    outages: Annotated[
        Path | None,
        typer.Option(
            "--outages",
            metavar="FILE.csv",
            help="When servers are down: columns server, start_s, end_s (empty: never).",
        ),
    ] = None,
    checkpoint: Annotated[
        float | None,
        typer.Option(
            "--checkpoint", parser=number, metavar="S", help="Seconds of work after which every job saves its state."
        ),
    ] = None,
    load: LoadOption = None,
    jobs: JobsOption = None,
    predict: Annotated[
        str | None,
        typer.Option(
            "--predict",
            metavar="MODEL",
            help="Let the scheduler go by sizes that a model predicts, such as combined; by default by the true ones.",
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine", metavar="|".join(ENGINES), help="Simulator: the reference, or its compiled twin (extra fast)."
        ),
    ] = "reference",
    seed: Annotated[
        int | None,
        typer.Option("--seed", parser=whole_number, metavar="S", help="Seed of policies and models that draw."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write instance, schedules and summary here.")
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    config: ConfigOption = None,
) -> int:
    """Run a trace or an instance under policies, check every schedule, and compare with a lower bound."""
    output = Output(command="simulate", as_json=json, quiet=quiet)
    seed = None if seed is None else as_int(seed, "option --seed", "seed", 0)
    policies = parse_policies(policy, seed)
    model = _model(predict, seed or 0)
    reading = Reading(
        format=trace_format,
        mode=mode_of(strict),
        time_unit=time_unit,
        zone=zone,
        duplicates=duplicates,
        fractions=fractions,
        locality=locality,
        jobs=jobs,
        load=load,
    )
    workload, instance = read_instance(trace, cluster, pool, reading)
    down = () if outages is None else read_outages(outages, instance.cluster)
    if checkpoint is not None:
        instance = _saving(instance, checkpoint)
    if out is not None:
        _make_folder(out)
        save(instance, out / "instance.json.gz")
    setting = _setting(workload, instance, output)
    bounds: dict[Choices, Bound] = {}
    rows = []
    for text, result in _results(policies, model, instance, output, down, engine):
        rows.append(_judged(text, result, instance, bounds))
        if out is not None:
            save(result.schedule, out / file_name(text), instance=instance)
    document = {**setting, "results": rows}
    if out is not None:
        write_text(out / "summary.json", json_text("simulate", document) + "\n")
    output.document(document)
    _report(rows, [bound_text(bound, _elastic(instance)) for bound in bounds.values()], output)
    if out is not None:
        output.remark(f"written to {out}")
    return 0 if all(map(passed, rows)) else 1


def parse_policies(text: str, seed: int | None = None) -> dict[str, Policy]:
    """Policies by the text that asks for each; a seed goes to those that have such a parameter.

    Raises
    ------
    UnknownNameError, InvalidValueError
        A policy is unknown or named twice, or its parameters are bad.

    Examples
    --------
    >>> [policy.name for policy in parse_policies("fifo, sjf:discipline=strict").values()]
    ['fifo', 'sjf']
    """
    policies: dict[str, Policy] = {}
    for part in map(str.strip, text.split(",")):
        if part in policies:
            raise InvalidValueError("option --policy", "policy", part, "is named twice")
        made = make_policy(part)
        if seed is not None and "seed" in made.parameters and ":seed=" not in part:
            made = make_policy(f"{part}:seed={seed}")
        policies[part] = made
    return policies


def file_name(policy: str) -> str:
    """Name of the schedule file of a policy.

    Examples
    --------
    >>> file_name("sjf:discipline=strict")
    'schedule-sjf-discipline=strict.json.gz'
    """
    return f"schedule-{_UNSAFE.sub('-', policy)}.json.gz"


def _setting(workload: Workload, instance: Instance, output: Output) -> dict[str, Any]:
    """What is simulated, as the first members of the JSON object, and as remarks."""
    trace, cluster = workload.summary, cluster_summary(instance.cluster)
    refusals = [refusal for job in instance.jobs if (refusal := never_fits(job, instance.cluster)) is not None]
    output.remark(f"{instance.name or 'instance'} on {cluster['text']}", *trace_lines(trace))
    if refusals:
        output.remark(refusal_text(refusals))
    return {"trace": trace, "cluster": cluster, "refusals": refusal_summary(refusals)}


def _model(predict: str | None, seed: int) -> Callable[[], OnlinePredictor] | None:
    """Maker of predictors that have seen nothing yet; None where sizes are known."""
    if predict in (None, _EXACT):
        return None
    make_model(predict, seed=seed)  # refuses a wrong name before anything is read
    return partial(OnlinePredictor, predict, seed=seed)


def _saving(instance: Instance, checkpoint_s: float) -> Instance:
    """The instance with jobs that save their state every so often."""
    checkpoint_s = as_finite(checkpoint_s, "option --checkpoint", "checkpoint")
    if checkpoint_s <= 0:
        raise InvalidValueError("option --checkpoint", "checkpoint", checkpoint_s, "must be above 0")
    return instance.replace(jobs=[job.replace(checkpoint_s=checkpoint_s) for job in instance.jobs])


def _results(
    policies: dict[str, Policy],
    model: Callable[[], OnlinePredictor] | None,
    instance: Instance,
    output: Output,
    outages: tuple[Outage, ...],
    engine: str,
) -> Iterator[tuple[str, Result]]:
    for text, policy in policies.items():
        with output.progress(text, len(instance.jobs)) as on_progress:
            predictor = None if model is None else model()
            result = simulate(
                instance, policy, predictor=predictor, on_progress=on_progress, outages=outages, engine=engine
            )
        yield text, result


def _judged(text: str, result: Result, instance: Instance, bounds: dict[Choices, Bound]) -> dict[str, Any]:
    """Outcome of a policy, with the bound for the choices that its schedule makes, computed once."""
    choices = choices_made(instance, result.schedule)
    if choices not in bounds:
        bounds[choices] = lower_bound(instance, choices=choices)
    return result_summary(text, result, bounds[choices], check_schedule(instance, result.schedule))


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = "is a file" if isinstance(error, FileExistsError) else file_problem(error)
        raise FileError(out, f"cannot be made a folder: {problem}") from None


def _elastic(instance: Instance) -> bool:
    """Whether some work is elastic."""
    return any(isinstance(job.work, Elastic) for job in instance.jobs)


def _report(rows: Sequence[dict[str, Any]], bounds: Iterable[str], output: Output) -> None:
    """The table of policies, and below it the bounds, the guarantees and the account of the jobs."""
    output.table(result_table(rows))
    output.remark(*bounds)
    output.remark(*(text for text in map(guarantee_text, rows) if text is not None))
    output.remark(*(text for text in map(outage_text, rows) if text is not None))
    output.remark(*(text for text in map(accuracy_text, rows) if text is not None))
    output.remark(*(text for text in map(prediction_text, rows) if text is not None))
    output.remark(*dict.fromkeys(map(jobs_text, rows)))
