"""The library of instances: made again to the byte, and everything that is recorded of it is so."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frostline.errors import FileError, FrostlineError, InvalidValueError, UnknownNameError
from frostline.offline import solve
from frostline.problem import Elastic, Instance, Profiled, Schedule, digest, load_schedule, save
from frostline.records import (
    Effort,
    Record,
    Verdict,
    attempt,
    best_bound,
    best_known,
    best_schedule,
    faults_of,
    improve,
    library_folder,
    read_records,
    write_records,
)
from frostline.records.attempt import at_last_level, choices_of, policy_schedule
from frostline.records.evidence import total_us
from frostline.simulation import simulate
from frostline.traces import library
from frostline.traces.families import SOURCES, WIDTHS, WORKS, family_instance
from frostline.traces.library import (
    FAMILIES,
    instance_entry,
    instance_names,
    load_named_instance,
    made_instance,
    matching_names,
)
from frostline.traces.workload import offered_load

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "instances"
RECORDS = read_records(FOLDER)
OF_FAMILIES = matching_names(FAMILIES)
STORED = [name for name in OF_FAMILIES if instance_entry(name).file is not None]
TOLD = [name for name in OF_FAMILIES if instance_entry(name).file is None]
LITTLE = Effort(work=1, nodes=50)
DRAWN: dict[str, Any] = {"jobs": 12, "servers": 2, "gpus_per_server": 4, "seed": 3}


# Instances.


@pytest.mark.parametrize("name", STORED)
def test_stored_instances_are_made_again_to_the_byte(name: str, tmp_path: Path) -> None:
    entry = instance_entry(name)
    save(made_instance(name), tmp_path / "made.json")
    assert entry.file == f"{name}.json"
    assert (tmp_path / "made.json").read_bytes() == (FOLDER / entry.file).read_bytes()
    assert digest(load_named_instance(name)) == entry.sha256


@pytest.mark.parametrize("name", TOLD)
def test_instances_that_are_not_stored_have_the_digest_of_the_index(name: str) -> None:
    made, entry = made_instance(name), instance_entry(name)
    assert digest(made) == entry.sha256
    assert digest(made.replace(jobs=made.jobs[:1000])) == entry.first_sha256


def test_an_instance_that_comes_out_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "medium/pool-03"
    monkeypatch.setattr(
        library, "family_instance", lambda name, **recipe: family_instance(name, **{**recipe, "seed": 9})
    )
    with pytest.raises(InvalidValueError, match="this numpy draws other numbers"):
        load_named_instance(name)


@pytest.mark.parametrize("name", OF_FAMILIES)
def test_instances_are_what_their_names_say(name: str) -> None:
    entry = instance_entry(name)
    assert entry.recipe is not None
    family, _, variant = name.rpartition("-")[0].partition("/")
    low, high = {"tiny": (5, 12), "small": (13, 40), "medium": (200, 5000), "online": (10_000, 100_000)}[family]
    assert low <= entry.recipe["jobs"] <= high
    assert (entry.recipe["servers"] == 1) == variant.startswith("pool")
    assert (entry.recipe.get("work", "fixed") == "elastic") == variant.endswith("freeze")
    assert entry.family == family
    assert entry.description
    assert entry.source


def test_the_folder_holds_what_is_named_and_little_else() -> None:
    files = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}
    files = {name for name in files if "__pycache__" not in name}
    named = {instance_entry(name).file for name in instance_names()}
    named |= {evidence.file for record in RECORDS.values() for evidence in (record.value, record.bound)}
    assert files == {name for name in named if name} | {"README.md", "index.json", "bounds.json"}
    assert sum((FOLDER / name).stat().st_size for name in files) < 6_000_000


def test_patterns_and_families() -> None:
    assert len(matching_names(["tiny"])) == len([name for name in instance_names() if name.startswith("tiny/")])
    assert matching_names(["q*", "q06"]) == ("q06", "q09")
    with pytest.raises(UnknownNameError, match="did you mean 'tiny'"):
        matching_names(["tinny"])
    with pytest.raises(InvalidValueError, match="made by hand"):
        made_instance("q06")
    assert digest(made_instance("philly-like-5000")) == digest(load_named_instance("philly-like-5000"))


# Making them.


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("work", WORKS)
def test_every_source_gives_every_work_on_whole_seconds(source: str, work: str) -> None:
    made = family_instance("toy", **DRAWN, source=source, work=work)  # type: ignore[arg-type]
    assert made == family_instance("toy", **DRAWN, source=source, work=work)  # type: ignore[arg-type]
    assert len(made.jobs) == 12
    assert made.jobs[0].release_s == 0
    assert all(job.release_s == int(job.release_s) for job in made.jobs)
    kinds = {"fixed": "Fixed", "profiled": "Profiled", "elastic": "Elastic"}
    assert {type(job.work).__name__ for job in made.jobs} == {kinds[work]}


def test_other_seeds_give_other_instances_and_the_load_is_about_what_was_asked_for() -> None:
    many = {**DRAWN, "jobs": 400, "load": 1.5}
    made = family_instance("toy", **many)
    assert digest(made) != digest(family_instance("toy", **{**many, "seed": 4}))
    assert offered_load(made.jobs, 8) == pytest.approx(1.5, rel=0.05)


@pytest.mark.parametrize("widths", WIDTHS)
def test_widths(widths: str) -> None:
    made = family_instance("toy", jobs=200, servers=1, gpus_per_server=16, seed=1, widths=widths)
    allowed = {
        "unit": {1},
        "narrow": {1, 2, 3, 4},
        "powers": {1, 2, 4, 8, 16},
        "any": set(range(1, 17)),
        "wide": {1, 16},
    }
    assert {job.gpus for job in made.jobs} == allowed[widths]


def test_work_on_one_width_is_that_of_the_fixed_job() -> None:
    fixed, profiled, elastic = (family_instance("toy", **DRAWN, work=work) for work in WORKS)  # type: ignore[arg-type]
    for one, two, three in zip(fixed.jobs, profiled.jobs, elastic.jobs, strict=True):
        assert isinstance(two.work, Profiled)
        assert isinstance(three.work, Elastic)
        length_s = one.work.duration_s  # type: ignore[union-attr]
        assert two.work.seconds_per_iteration["one_server"] * 1000 == pytest.approx(length_s)  # type: ignore[index]
        assert three.work.seconds(one.gpus, "one_server") * 1000 == pytest.approx(length_s)  # type: ignore[arg-type]
        assert (one.gpus, one.release_s, one.locality) == (three.gpus, three.release_s, three.locality)


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("jobs", 0, InvalidValueError),
        ("servers", 0, InvalidValueError),
        ("gpus_per_server", 1.5, InvalidValueError),
        ("seed", -1, InvalidValueError),
        ("load", 0, InvalidValueError),
        ("longest_s", 10**7, InvalidValueError),
        ("longest_s", 0, InvalidValueError),
        ("source", "phily", UnknownNameError),
        ("work", "rigid", UnknownNameError),
        ("widths", "broad", UnknownNameError),
    ],
)
def test_bad_recipes(field: str, value: object, error: type[FrostlineError]) -> None:
    with pytest.raises(error, match=field if error is InvalidValueError else str(value)):
        family_instance("toy", **{**DRAWN, field: value})


# Records.


def test_every_instance_has_a_record_in_the_order_of_the_index() -> None:
    assert tuple(RECORDS) == instance_names()
    assert all(RECORDS[name].sha256 == instance_entry(name).sha256 for name in OF_FAMILIES)


@pytest.mark.parametrize("name", [name for name in instance_names() if not name.startswith("online/")])
def test_records_are_so(name: str) -> None:
    record = RECORDS[name]
    assert faults_of(record, load_named_instance(name), FOLDER) == ()
    assert record.bound.us <= record.value.us
    assert record.solver_bound_us is None or record.bound.us < record.solver_bound_us <= record.value.us
    assert record.value.file is not None


@pytest.mark.parametrize("name", [name for name in instance_names() if name.startswith("online/")])
def test_records_of_large_instances_go_together(name: str) -> None:
    record = RECORDS[name]
    assert record.bound.us <= record.value.us
    assert record.jobs == instance_entry(name).recipe["jobs"]  # type: ignore[index]
    assert (
        record.value.method.split(" at ")[0].split(",")[0] in attempt.POLICIES
    )  # the rest tells how widths were chosen


@pytest.mark.parametrize("name", ["online/pool-01"])
def test_a_schedule_that_is_not_stored_is_made_again_by_its_policy(name: str) -> None:
    schedule = policy_schedule(load_named_instance(name), RECORDS[name].value.method)
    assert total_us(schedule) == RECORDS[name].value.us


@pytest.mark.parametrize("name", matching_names(["tiny"]))
def test_tiny_instances_are_proved_by_trees(name: str) -> None:
    record = RECORDS[name]
    assert record.proved
    assert record.bound.method == "tree"
    assert record.bound.file is not None
    assert record.gap == 0


def test_most_small_instances_are_proved_by_trees() -> None:
    small = [RECORDS[name] for name in matching_names(["small"])]
    assert sum(record.proved and record.bound.method == "tree" for record in small) > len(small) / 2


@pytest.mark.parametrize("name", matching_names(["tiny/pool-0[12]", "tiny/servers-0[123]", "tiny/pool-freeze-0[12]"]))
def test_brute_force_agrees(name: str) -> None:
    instance = at_last_level(load_named_instance(name))
    found = solve(instance, method="brute-force", widths=True)
    assert (found.status.value, found.objective_us) == ("optimal", RECORDS[name].value.us)


@pytest.mark.parametrize("name", matching_names(["tiny"]))
def test_no_policy_is_below_the_bound(name: str) -> None:
    for policy in ("asrpt", "fifo"):
        assert total_us(simulate(load_named_instance(name), policy).schedule) >= RECORDS[name].bound.us


def test_known_optima_agree_with_the_index() -> None:
    for name in ("q06", "q09", "p14"):
        known = {v.quantity: v.value for v in instance_entry(name).known if v.of == "optimum"}
        assert best_known(name).flow_s == known["total_flow_s"]
    with pytest.raises(UnknownNameError, match="did you mean 'q06'"):
        best_known("q6")


# What is wrong is found.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the records of three instances with their evidence."""
    names = ("q06", "tiny/pool-03", "tiny/servers-freeze-04")
    for name in names:
        for file in (RECORDS[name].value.file, RECORDS[name].bound.file):
            assert file is not None
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_bytes((FOLDER / file).read_bytes())
    write_records(tmp_path, [RECORDS[name] for name in names])
    return tmp_path


def _faults(record: Record, folder: Path) -> str:
    return "; ".join(faults_of(record, load_named_instance(record.name), folder))


def test_records_are_read_as_they_were_written(folder: Path) -> None:
    read = read_records(folder)
    assert list(read.values()) == [RECORDS[name] for name in read]
    before = (folder / "bounds.json").read_bytes()
    write_records(folder, read.values())
    assert (folder / "bounds.json").read_bytes() == before
    assert read_records(folder / "none") == {}


def test_false_records_are_found(folder: Path) -> None:
    record = RECORDS["tiny/pool-03"]
    assert _faults(record, folder) == ""
    assert "another instance" in _faults(replace(record, sha256="0" * 64), folder)
    assert "do not go together" in _faults(replace(record, jobs=record.jobs + 1), folder)
    lower = replace(record.value, us=record.value.us - 1_000_000)
    assert "completes jobs in" in _faults(replace(record, value=lower), folder)
    higher = replace(record.bound, us=record.bound.us + 1_000_000)
    assert "the certificate proves" in _faults(replace(record, bound=higher), folder)
    assert "about 'asked' jobs" in _faults(replace(record, choices="elastic"), folder)
    assert "no such file" in _faults(replace(record, bound=replace(record.bound, file="none.json")), folder)
    other = replace(record.value, file=RECORDS["q06"].value.file)
    assert "is for the instance 'q06'" in _faults(replace(record, value=other), folder)


def test_changed_evidence_is_found(folder: Path) -> None:
    record = RECORDS["tiny/pool-03"]
    instance = load_named_instance(record.name)
    path = folder / str(record.bound.file)
    certificate = json.loads(gzip.decompress(path.read_bytes()))
    path.write_text(json.dumps({**certificate, "bound": certificate["bound"] + 1}))
    assert "SHA-256" in _faults(record, folder)
    schedule = load_schedule(folder / str(record.value.file), instance)
    early = tuple(part._replace(start_us=0, end_us=part.end_us - part.start_us) for part in schedule.segments)
    save(Schedule(segments=early), folder / str(record.value.file), instance=instance)
    assert "before" in _faults(record, folder)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda row: row.pop("sha256"), r"records\[0\]: must be an object with the fields"),
        (lambda row: row.update(extra=1), r"records\[0\]: must be an object with the fields"),
        (lambda row: row.update(jobs="3"), r"records\[0\].jobs: is '3'"),
        (lambda row: row["value"].update(us=1.5), r"records\[0\].value.us: is 1.5"),
        (lambda row: row.update(bound=None), r"records\[0\].bound: is None"),
        (lambda row: row.update(jobs=True), r"records\[0\].jobs: is True"),
    ],
)
def test_bad_files_of_records(folder: Path, change: Any, fault: str) -> None:
    path = folder / "bounds.json"
    data = json.loads(path.read_text())
    change(data["records"][0])
    path.write_text(json.dumps(data))
    with pytest.raises(FileError, match=fault):
        read_records(folder)
    path.write_text(json.dumps({"format": "frostline/bounds", "version": 1, "records": {}}))
    with pytest.raises(FileError, match="must be a list"):
        read_records(folder)


# Proving and improving.


def test_an_empty_folder_is_filled_and_then_left_alone(tmp_path: Path) -> None:
    names = ("q06", "tiny/servers-freeze-04")
    first = list(improve(names, tmp_path, LITTLE))
    assert [outcome.verdict for outcome in first] == [Verdict.NEW] * 2
    for outcome in first:
        assert outcome.record.value.us == RECORDS[outcome.record.name].value.us
        assert outcome.record.proved
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert [outcome.verdict for outcome in improve(names, tmp_path, LITTLE)] == [Verdict.SKIPPED] * 2
    assert [outcome.verdict for outcome in improve(names[:1], tmp_path, LITTLE, again=True)] == [Verdict.SAME]
    assert {path: path.read_bytes() for path in before} == {
        path: data if path.name != "bounds.json" else path.read_bytes() for path, data in before.items()
    }


def test_records_give_way_only_to_better_ones(folder: Path) -> None:
    name = "tiny/pool-03"
    instance = load_named_instance(name)
    poor = policy_schedule(instance, "fifo")
    assert total_us(poor) > RECORDS[name].value.us
    weak = best_bound(instance, RECORDS[name].value.us, Effort(work=0, nodes=1))
    file = str(RECORDS[name].value.file)
    save(poor, folder / file, instance=instance)
    value = replace(RECORDS[name].value, us=total_us(poor), method="fifo")
    assert weak.us < RECORDS[name].bound.us
    path = folder / str(RECORDS[name].bound.file)
    path.write_text(json.dumps(weak.certificate))
    bound = replace(RECORDS[name].bound, us=weak.us, method=weak.method)
    write_records(folder, [replace(RECORDS[name], value=value, bound=bound, work=0.0, nodes=1)])
    (outcome,) = improve([name], folder, Effort(work=5, nodes=300))
    assert outcome.verdict is Verdict.BETTER
    assert outcome.record.value.us == RECORDS[name].value.us
    assert outcome.record.bound.us > weak.us
    assert faults_of(outcome.record, instance, folder) == ()


def test_what_is_wrong_is_found_anew(folder: Path) -> None:
    name = "q06"
    wrong = replace(RECORDS[name], value=replace(RECORDS[name].value, us=137_000_000), bound=RECORDS[name].bound)
    write_records(folder, [wrong])
    (outcome,) = improve([name], folder, LITTLE)
    assert outcome.verdict is Verdict.NEW
    assert any("completes jobs in 138000000" in fault for fault in outcome.faults)
    assert read_records(folder)[name].value.us == 138_000_000


def test_searches_of_less_effort_are_skipped_and_of_more_are_not(tmp_path: Path) -> None:
    name = next(name for name in matching_names(["small"]) if not RECORDS[name].proved)
    little = Effort(work=0.2, nodes=1)
    (first,) = improve([name], tmp_path, little)
    assert not first.record.proved
    assert [one.verdict for one in improve([name], tmp_path, little)] == [Verdict.SKIPPED]
    (more,) = improve([name], tmp_path, Effort(work=0.4, nodes=2))
    assert more.verdict in (Verdict.SAME, Verdict.BETTER)
    assert (more.record.work, more.record.nodes) == (0.4, 2)


def test_interrupted_runs_keep_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(instance: Instance, *rest: Any) -> Any:
        if instance.name == "q09":
            raise KeyboardInterrupt
        return best_bound(instance, *rest)

    monkeypatch.setattr("frostline.records.search.best_bound", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(improve(("q06", "q09", "p14"), tmp_path, LITTLE))
    assert list(read_records(tmp_path)) == ["q06"]
    monkeypatch.undo()
    verdicts = [outcome.verdict for outcome in improve(("q06", "q09", "p14"), tmp_path, LITTLE)]
    assert verdicts == [Verdict.SKIPPED, Verdict.NEW, Verdict.NEW]


def test_an_interrupted_search_keeps_a_better_schedule(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = load_named_instance("q06")
    poor = policy_schedule(instance, "fifo")
    save(poor, folder / str(RECORDS["q06"].value.file), instance=instance)
    value = replace(RECORDS["q06"].value, us=total_us(poor))
    write_records(folder, [replace(RECORDS["q06"], value=value, work=0.0)])

    def stopped(*arguments: Any) -> Any:
        return replace(best_schedule(*arguments), interrupted=True)

    monkeypatch.setattr("frostline.records.search.best_schedule", stopped)
    with pytest.raises(KeyboardInterrupt):
        list(improve(["q06"], folder, LITTLE))
    kept = read_records(folder)["q06"]
    assert (kept.value.us, kept.bound, kept.work) == (138_000_000, RECORDS["q06"].bound, 0.0)
    assert faults_of(kept, instance, folder) == ()


def test_what_breaks_a_rule_is_never_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(instance: Instance, *rest: Any) -> Any:
        found = best_schedule(instance, *rest)
        return replace(found, schedule=Schedule(segments=found.schedule.segments[:2]))

    monkeypatch.setattr("frostline.records.search.best_schedule", broken)
    with pytest.raises(FrostlineError, match="what was found is wrong: job"):
        list(improve(["q06"], tmp_path, LITTLE))
    assert read_records(tmp_path) == {}


def test_searches_are_repeatable_and_choose_widths_and_levels() -> None:
    instance = load_named_instance("tiny/pool-freeze-05")
    assert choices_of(instance) == "elastic"
    found, again = (best_schedule(instance, LITTLE) for _ in range(2))
    assert found == again
    assert any(part.freeze_level for part in found.schedule.segments)
    asked = {job.id: job.gpus for job in instance.jobs}
    assert any(part.placement.gpus != asked[part.job] for part in found.schedule.segments)
    warm = instance.jobs[0].work
    assert isinstance(warm, Elastic)
    slow = Elastic(
        iterations=warm.iterations,
        widths=warm.widths,
        seconds_per_iteration={"one_server": {w: [1.0, 0.5] for w in warm.widths}},  # type: ignore[dict-item]
        compute_shares=(0.0, 0.5),
        warm_up=0.2,
    )
    with pytest.raises(InvalidValueError, match="warm_up"):
        at_last_level(instance.replace(jobs=[instance.jobs[0].replace(work=slow)]))


def test_large_instances_take_the_best_policy() -> None:
    instance = family_instance("toy", jobs=1001, servers=1, gpus_per_server=8, seed=1)
    found = best_schedule(instance, LITTLE)
    totals = {name: total_us(policy_schedule(instance, name)) for name in attempt.POLICIES}
    assert (found.us, found.solver_bound_us) == (min(totals.values()), None)
    assert totals[found.method] == found.us


@pytest.mark.parametrize("field", ["work", "nodes"])
def test_bad_effort(field: str) -> None:
    with pytest.raises(InvalidValueError, match=field):
        Effort(**{field: -1})


# Documentation.


def test_the_page_names_every_family() -> None:
    page = (ROOT / "docs" / "instances.md").read_text("utf-8")
    assert all(f"`{name}`" in page for name in FAMILIES)


def test_the_shipped_folder_is_this_one() -> None:
    assert library_folder().resolve() == FOLDER.resolve()


def test_an_unknown_name_is_not_answered_with_all_of_them() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'tiny/pool-12'\? Known: .* and \d+ more$"):
        load_named_instance("tiny/pool-1")
