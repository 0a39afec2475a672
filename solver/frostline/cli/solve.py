"""``frostline solve``: the best schedule of a whole instance that is known from the start."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer

from frostline.cli.bound import save_certificate
from frostline.cli.group import INFEASIBLE, INTERRUPTED, fail
from frostline.cli.inputs import Reading, read_instance
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
    SeedOption,
    TimeUnitOption,
    ZoneOption,
    examples,
    mode_of,
    number,
    whole_number,
)
from frostline.cli.output import Output
from frostline.errors import UnknownNameError
from frostline.offline import (
    METHODS,
    VARIANTS,
    AnyOf,
    Certified,
    GapLimit,
    Objective,
    SearchState,
    SolveResult,
    SolveStatus,
    StopRule,
    Termination,
    TimeLimit,
    WorkLimit,
    certified,
    pooled,
    solve,
)
from frostline.offline.solve import EFFORT
from frostline.policies import make_policy
from frostline.problem import Instance, Schedule
from frostline.problem.documents import check_ending
from frostline.problem.files import save
from frostline.report.certificate import fault_summary
from frostline.report.solve import certified_line, certified_summary, solve_lines, solve_summary, start_table
from frostline.report.workload import cluster_summary
from frostline.simulation import simulate
from frostline.verify import check_schedule

__all__ = ["EXAMPLES", "run"]

EXAMPLES = examples(
    "solve run/instance.json.gz --objective flow --time-limit 60 --gap 0.01 --json",
    "solve q06 --objective makespan --out optimum/",
    "solve trace.csv --repair --pool 8 --jobs 20 --objective completion --certificate proof.json",
)

_HINTS = "asrpt,sjf,smallest-area,easy"
_MOST_HINT_JOBS = 20_000
_SHOWN = 50


def run(
    source: Annotated[str, typer.Argument(metavar="INSTANCE|TRACE", help="Instance file or name, or trace file.")],
    objective: Annotated[
        str, typer.Option("--objective", metavar="NAME", help=f"{', '.join(Objective)}.")
    ] = "completion",
    method: Annotated[str, typer.Option("--method", metavar="NAME", help=f"{', '.join(METHODS)}.")] = "auto",
    variant: Annotated[
        str, typer.Option("--variant", metavar="NAME", help="servers as they are, or one pool of all their GPUs.")
    ] = "servers",
    time_limit: Annotated[
        float | None,
        typer.Option("--time-limit", parser=number, metavar="SECONDS", help="Stop then with the best so far."),
    ] = None,
    gap: Annotated[
        float,
        typer.Option("--gap", parser=number, metavar="X", help="Share of the objective at which a search may stop."),
    ] = 0.0,
    work: Annotated[
        float | None,
        typer.Option(
            "--work",
            parser=number,
            metavar="X",
            help=f"Stop after so much work, the same on any machine; {EFFORT:g} without --time-limit.",
        ),
    ] = None,
    deadline: Annotated[
        float | None,
        typer.Option("--deadline", parser=number, metavar="SECONDS", help="Instant by which every job must complete."),
    ] = None,
    widths: Annotated[
        bool, typer.Option("--widths", help="Let elastic jobs run on any of their widths, not only the one asked for.")
    ] = False,
    hints: Annotated[
        str, typer.Option("--hints", metavar="A,B,...", help="Policies whose schedules the search starts from.")
    ] = _HINTS,
    workers: Annotated[
        int,
        typer.Option("--workers", parser=whole_number, metavar="N", help="Threads; with several, results may differ."),
    ] = 1,
    certificate: Annotated[
        Path | None,
        typer.Option(
            "--certificate", metavar="FILE.json", help="Write what proves the optimum, or else a bound, to check."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write instance.json.gz and schedule.json.gz here.")
    ] = None,
    cluster: ClusterOption = None,
    pool: PoolOption = None,
    strict: ModeOption = None,
    trace_format: FormatOption = None,
    time_unit: TimeUnitOption = None,
    zone: ZoneOption = None,
    duplicates: DuplicatesOption = None,
    fractions: FractionsOption = None,
    locality: LocalityOption = None,
    load: LoadOption = None,
    jobs: JobsOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
    quiet: QuietOption = False,
    config: ConfigOption = None,
) -> int:
    """Find the best schedule of a whole instance in which no job is interrupted, and prove how good it is."""
    output = Output(command="solve", as_json=json, quiet=quiet)
    if certificate is not None:
        check_ending(certificate)
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
    _, instance = read_instance(source, cluster, pool, reading)
    rules = _stop(time_limit, gap, work)
    with output.progress("gap closed, %", 100) as on_progress:
        result = solve(
            instance,
            objective=objective,
            method=method,
            variant=variant,
            stop=rules,
            hints=_simulated(instance, hints, variant),
            widths=widths,
            deadlines_s={} if deadline is None else {job.id: deadline for job in instance.jobs},
            seed=seed,
            workers=workers,
            on_progress=None if on_progress is None else _told(on_progress),
        )
    proof = None
    if certificate is not None and result.schedule is not None:
        proof = _proof(result, widths, time_limit)
        save_certificate(certificate, proof.document)
    code = _report(result, output, variant, proof)
    if out is not None and result.schedule is not None:
        _save(result, out)
        output.remark(f"written to {out}")
    if certificate is not None:
        output.remark(certified_line(result, proof, certificate))
    return code


def _stop(time_limit: float | None, gap: float, work: float | None) -> StopRule:
    """Rule of the options; deterministic unless a time limit is asked for."""
    rules: list[StopRule] = [GapLimit(gap)]
    if time_limit is not None:
        rules.append(TimeLimit(time_limit))
    if work is not None or time_limit is None:
        rules.append(WorkLimit(EFFORT if work is None else work))
    return AnyOf(*rules)


def _simulated(instance: Instance, policies: str, variant: str) -> list[Schedule]:
    """Schedules of policies, where there are not too many jobs; those that evict are no hints."""
    if len(instance.jobs) > _MOST_HINT_JOBS:
        return []
    played = pooled(instance) if variant == VARIANTS[1] else instance
    made = [make_policy(name) for name in map(str.strip, policies.split(",")) if name]
    try:
        schedules = [simulate(played, policy).schedule for policy in made]
    except UnknownNameError:  # a GPU type without the precision of a job, which no policy is offered
        return []
    return [schedule for schedule in schedules if not schedule.evictions]


def _told(on_progress: Callable[[int, int], None]) -> Callable[[SearchState], None]:
    def tell(state: SearchState) -> None:
        gap = state.gap
        on_progress(0 if gap is None else int(100 * (1 - gap)), 100)

    return tell


def _proof(result: SolveResult, widths: bool, time_limit: float | None) -> Certified:
    """Certificate of a result; a tree takes no longer than the search for the schedule may, and Ctrl-C ends it."""
    end_s = math.inf if time_limit is None else monotonic() + time_limit
    if result.termination is not Termination.INTERRUPTED:
        with suppress(KeyboardInterrupt):
            return certified(result, widths=widths, callback=lambda nodes: monotonic() >= end_s)
    return certified(result, widths=widths, callback=lambda nodes: True)


def _report(result: SolveResult, output: Output, variant: str, proof: Certified | None) -> int:
    faults: list[dict[str, Any]] = []
    if result.schedule is not None:
        faults = [fault_summary(fault) for fault in check_schedule(result.instance, result.schedule).faults]
    cluster = cluster_summary(result.instance.cluster)
    members = {**solve_summary(result), "variant": variant, "cluster": cluster, "valid": not faults, "faults": faults}
    members["certificate"] = None if proof is None else certified_summary(proof)
    output.document(members)
    output.remark(f"{result.instance.name or 'instance'} on {cluster['text']}")
    if result.schedule is not None and not output.quiet and len(result.schedule.segments) <= _SHOWN:
        output.table(start_table(result))
    output.tell(*solve_lines(result))
    output.remark(*(f"impossible: {one.text}" for one in result.explanations))
    if faults:
        return fail(f"the schedule breaks {len(faults)} rules: {faults[0]['text']}", INFEASIBLE)
    if result.termination is Termination.INTERRUPTED:
        return INTERRUPTED
    return INFEASIBLE if result.status in (SolveStatus.INFEASIBLE, SolveStatus.UNKNOWN) else 0


def _save(result: SolveResult, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    assert result.schedule is not None
    save(result.instance, out / "instance.json.gz")
    save(result.schedule, out / "schedule.json.gz", instance=result.instance)
