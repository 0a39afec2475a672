"""Saved models: the same bits again, or a refusal that says why."""

from __future__ import annotations

import io
import json
import sys
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.ensemble import RandomForestRegressor

from frostline.errors import FileError, InvalidValueError, MissingExtraError
from frostline.prediction import make_model
from frostline.prediction.forest_model import ForestModel
from frostline.prediction.model import Finished
from frostline.prediction.persistence import load_model, save_model
from frostline.problem.job import Fixed, Job


def job(number: int) -> Job:
    work = Fixed(duration_s=1.0)
    name, user = f"run-{number % 5}", f"u{number % 3}"
    return Job(id=f"{number}", release_s=float(number), work=work, gpus=1 + number % 4, user=user, name=name)


def live(model: ForestModel, numbers: range) -> list[object]:
    """Let the model see jobs; what it said of each. Every third is still running ten jobs later."""
    said = []
    for number in numbers:
        said += model.predict([job(number)], float(number))
        ended = [n for n in (number, number - 10) if n >= 0 and (n % 3 == 0) == (n < number)]
        model.learn([Finished(job(n), 100.0 + n * n % 997, number + 0.5) for n in ended], number + 0.5)
    return said


@pytest.fixture
def model() -> ForestModel:
    made = ForestModel(n_estimators=6, min_samples_leaf=2, first_fit=10, max_features=0.5, seed=3)
    live(made, range(60))
    return made


@pytest.fixture
def saved(model, tmp_path):
    path = tmp_path / "model.skops"
    save_model(model, path)
    return path


def rewrite(path, **changes) -> None:
    """Change the document in a file, as another program could."""
    document = skops.io.load(path)
    document.update(changes)
    skops.io.dump(document, path)


def test_round_trip_goes_on_with_the_same_bits(model, saved):
    again = load_model(saved)
    assert again.fits == model.fits > 1
    assert live(again, range(60, 120)) == live(model, range(60, 120))
    assert again.fits == model.fits
    rows = np.random.default_rng(0).normal(size=(50, again.forest.n_features_in_))
    assert again.forest.predict_points(rows).tobytes() == model.forest.predict_points(rows).tobytes()
    assert np.array_equal(again.forest.feature_importances_, model.forest.feature_importances_)


def test_an_untrained_model_can_be_kept(tmp_path):
    save_model(ForestModel(seed=5, refit_s=float("inf")), tmp_path / "new.skops")
    again = load_model(tmp_path / "new.skops")
    assert again.seed == 5 and again.forest is None and again.predict([job(0)], 0.0) == [None]


def test_the_file_says_what_it_is_and_holds_nothing_to_run(saved):
    document = skops.io.load(saved)
    assert (document["format"], document["version"], document["model"]) == ("frostline/size-model", 1, "forest")
    assert set(document["versions"]) == {"python", "frostline", "scikit-learn", "numpy"}
    assert skops.io.get_untrusted_types(file=saved) == []


def test_another_version_of_scikit_learn_is_refused_with_the_way_out(saved):
    import sklearn

    rewrite(saved, versions={"scikit-learn": "1.2.3"})
    with pytest.raises(FileError) as caught:
        load_model(saved)
    for part in (str(saved), "scikit-learn 1.2.3", sklearn.__version__, "train the model again from the history"):
        assert part in str(caught.value)
    rewrite(saved, versions=None)
    with pytest.raises(FileError, match="train the model again"):
        load_model(saved)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"format": "other"}, "is not of format 'frostline/size-model'"),
        ({"version": 2}, "is of version 2 of its format, this frostline reads 1; train the model again"),
        ({"model": "linear"}, "holds a model 'linear'"),
        ({"plain": "{"}, "does not hold what its format promises: JSONDecodeError"),
        ({"plain": "{}"}, "does not hold what its format promises: KeyError"),
        ({"plain": "[" * 100_000}, "does not hold what its format promises: RecursionError"),
        ({"arrays": {}}, "does not hold what its format promises: KeyError"),
        ({"arrays": 7}, "does not hold what its format promises"),
    ],
)
def test_other_contents_are_refused(saved, changes, problem):
    rewrite(saved, **changes)
    with pytest.raises(FileError) as caught:
        load_model(saved)
    assert f"{saved}: {problem}" in str(caught.value)


def _nodes(name, value):
    def change(arrays):
        inner = np.flatnonzero(arrays["forest.nodes"]["left_child"] != -1)
        arrays["forest.nodes"][name][inner[0]] = value

    return change


def _set(name, index, value):
    def change(arrays):
        arrays[name][index] = value

    return change


def _cut(name):
    def change(arrays):
        arrays[name] = arrays[name][:-1]

    return change


@pytest.mark.parametrize(
    "change",
    [
        _nodes("left_child", 10**9),
        _nodes("right_child", 0),
        _nodes("left_child", -5),
        _nodes("feature", 10**6),
        _nodes("feature", -1),
        _set("forest.leaf_values", slice(None), -1.0),
        _set("forest.leaf_values", slice(None), np.nan),
        _set("anchor", 0, 99),
        _set("said", (0, 0), 7.0),
        _set("features.recent_slots", 0, 10**6),
        *map(_cut, ["forest.leaf_values", "forest.nodes", "rows", "said", "bounds", "features.past"]),
    ],
)
def test_damaged_arrays_are_refused_before_they_can_do_harm(saved, change):
    arrays = skops.io.load(saved)["arrays"]
    change(arrays)
    rewrite(saved, arrays=arrays)
    with pytest.raises(FileError, match="does not hold what its format promises"):
        load_model(saved)


def test_columns_of_another_version_are_refused(saved):
    document = json.loads(skops.io.load(saved)["plain"])
    rewrite(saved, plain=json.dumps({**document, "columns": document["columns"][:-1]}))
    with pytest.raises(FileError, match="columns are not those of this version"):
        load_model(saved)


def test_types_that_are_not_safe_are_refused_by_name(tmp_path):
    path = tmp_path / "model.skops"
    forest = RandomForestRegressor(2).fit([[0.0], [1.0]], [0.0, 1.0])
    skops.io.dump({"format": "frostline/size-model", "version": 1, "forest": forest}, path)
    with pytest.raises(FileError, match=r"not safe to load: sklearn\.tree\._tree\.Tree"):
        load_model(path)


def _zip(name: str, text: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, text)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "data", [b"", b"not a zip", _zip("other", ""), _zip("schema.json", "{}"), _zip("schema.json", "["), b"\x80\x04N."]
)
def test_what_is_no_archive_of_ours_is_refused(tmp_path, data):
    path = tmp_path / "model.skops"
    path.write_bytes(data)
    with pytest.raises(FileError, match="is no saved model, or damaged"):
        load_model(path)


def test_a_cut_or_changed_file_is_refused(saved):
    whole = saved.read_bytes()
    for data in (whole[: len(whole) // 2], whole[:-1], b"x" + whole[1:-30] + bytes(30)):
        saved.write_bytes(data)
        with pytest.raises(FileError, match=r"model\.skops: "):
            load_model(saved)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        load_model(tmp_path / "none.skops")
    with pytest.raises(FileError, match="cannot be read"):
        load_model(tmp_path)
    with pytest.raises(FileError, match="cannot be written"):
        save_model(ForestModel(), tmp_path / "no" / "folder.skops")
    with pytest.raises(FileError, match=r"must end in \.skops"):
        save_model(ForestModel(), tmp_path / "model.pkl")


def test_only_forests_are_kept(tmp_path):
    with pytest.raises(InvalidValueError, match="must be a ForestModel"):
        save_model(make_model("median"), tmp_path / "model.skops")


def test_without_skops_the_extra_is_named(monkeypatch, saved):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    for act in (lambda: load_model(saved), lambda: save_model(ForestModel(), saved)):
        with pytest.raises(MissingExtraError, match=r"frostline\[persist\]"):
            act()
