"""Names of recurring jobs: a stem that stays, and behind the last hyphen or underscore what changes every time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta

from frostline.problem.job import Job
from frostline.traces.draws import DAY_S

__all__ = ["FAMILIES", "HASHES", "SUFFIXES", "run_name", "stems", "template_of"]

FAMILIES = {
    "resnet50": 0.35,
    "vgg19": 0.5,
    "inception": 0.4,
    "vit": 0.5,
    "bert": 0.6,
    "roberta": 0.7,
    "gpt2": 0.9,
    "t5": 1.1,
    "llama": 2.5,
    "dlrm": 0.05,
    "deepspeech": 0.8,
}
"""Families of models and typical seconds of one iteration; orders of magnitude, not measurements."""

SUFFIXES = 4
"""Number of kinds of endings: a version, a number of the run, a date, a hash."""

HASHES = 16**7
"""Number of hashes that a name can end with."""

_TASKS = ("train", "finetune", "pretrain", "eval", "ablation")
_WORDS = (
    *("amber", "birch", "cedar", "delta", "ember", "fjord", "gamma", "hazel", "iris", "jade", "kilo", "lotus", "maple"),
    *("nova", "onyx", "pine", "quartz", "river", "sigma", "tango", "umber", "violet", "willow", "xenon", "yarrow"),
)
_FIRST_DAY = date(2024, 1, 1)
_STEM = re.compile(r"[-_][^-_]*\Z")


def stems(user: Sequence[int], family: Sequence[int], task: Sequence[int]) -> list[str]:
    """Stems of templates, no two of one user alike.

    Examples
    --------
    >>> stems([0, 0, 3], [1, 1, 4], [0, 0, 7])
    ['vgg19-train-amber', 'vgg19-train-birch', 'bert-pretrain-violet']
    """
    names, seen = list(FAMILIES), dict[int, int]()
    result = []
    for who, model, what in zip(user, family, task, strict=True):
        seen[who] = count = seen.get(who, -1) + 1
        result.append(f"{names[model]}-{_TASKS[what % len(_TASKS)]}-{_words(7 * who % len(_WORDS) + count)}")
    return result


def _words(number: int) -> str:
    """Word of a number, or several without a break where there are too few words."""
    rest, last = divmod(number, len(_WORDS))
    return (_words(rest - 1) if rest else "") + _WORDS[last]


def run_name(stem: str, suffix: int, run: int, release_s: float, bits: int) -> str:
    """Name of a run of a template.

    Parameters
    ----------
    stem : str
        What stays.
    suffix : int
        Kind of the ending, below ``SUFFIXES``.
    run : int
        Number of the run of its template, from 1.
    release_s : float
        Release time, for a date; time 0 is 2024-01-01.
    bits : int
        The hash, below ``HASHES``.

    Examples
    --------
    >>> [run_name("bert-train-iris", suffix, 12, 90_000.0, 64206) for suffix in range(SUFFIXES)]
    ['bert-train-iris-v12', 'bert-train-iris_run12', 'bert-train-iris-20240102', 'bert-train-iris-000face']
    """
    if suffix == 0:
        return f"{stem}-v{run}"
    if suffix == 1:
        return f"{stem}_run{run}"
    if suffix == 2:
        return f"{stem}-{_FIRST_DAY + timedelta(days=int(release_s // DAY_S)):%Y%m%d}"
    return f"{stem}-{bits:07x}"


def template_of(job: Job) -> tuple[str, str]:
    """User and stem of the name of a job of :func:`~frostline.traces.recurring.generate_recurring_jobs`.

    Examples
    --------
    >>> from frostline.problem.job import Fixed
    >>> template_of(Job(id="1", release_s=0, work=Fixed(duration_s=9), gpus=1, user="u", name="bert-train-iris_run12"))
    ('u', 'bert-train-iris')
    """
    return job.user, _STEM.sub("", job.name)
