"""Solvers of mixed-integer linear models behind one adapter: what each can do, whether it is there, what it answers.

Models are built with PuLP, under short names of their own. What PuLP says of an answer is not used: it calls a search
that ran into its time limit optimal. The words of the solvers are translated by tables here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frostline.errors import FrostlineError, FrostlineWarning, UnknownNameError
from frostline.placement.interruptible import run_interruptibly

if TYPE_CHECKING:
    import pulp

__all__ = [
    "SOLVERS",
    "Effort",
    "MipAnswer",
    "MipSolver",
    "Outcome",
    "SolverFailedError",
    "SolverUnavailableError",
    "SolverWarning",
    "solve_mip",
    "solver_named",
]

_TOLERANCE = 1e-9
_GRACE_S = 1.0


class Outcome(StrEnum):
    """How a search ended, whatever the solver calls it."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    NOTHING_FOUND = "nothing found"
    INVALID_MODEL = "invalid"


class SolverWarning(FrostlineWarning):
    """A solver that was asked for is not there; another one took its place."""


class SolverFailedError(FrostlineError, RuntimeError):
    """A solver could not be run; the message says why."""


class SolverUnavailableError(FrostlineError, RuntimeError):
    """No solver could be run.

    Parameters
    ----------
    tried : mapping of str to str
        Why each of them could not.

    Examples
    --------
    >>> str(SolverUnavailableError({"cbc": "no such program", "highs": "cannot be imported"}))
    'no solver of mixed-integer models: cbc (no such program), highs (cannot be imported)'
    """

    def __init__(self, tried: Mapping[str, str]) -> None:
        reasons = ", ".join(f"{name} ({why})" for name, why in tried.items())
        super().__init__(f"no solver of mixed-integer models: {reasons}")
        self.tried = dict(tried)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long and how hard to search.

    Parameters
    ----------
    time_limit_s : float
        Seconds of wall time.
    nodes : int
        Nodes of the search tree.
    gap : float
        Distance to the bound, as a share of the value, at which to stop.
    threads : int
        Threads, for solvers that can be told.
    """

    time_limit_s: float = 60.0
    nodes: int = 1_000_000
    gap: float = 0.0
    threads: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MipAnswer:
    """What a solver answered; values can be read where it found some, and only there.

    Parameters
    ----------
    outcome : Outcome
        How the search ended.
    bound : float
        Lower bound on the objective as the solver's floats have it; minus infinity where it gives none.
    interrupted : bool
        Whether Ctrl-C ended the search.
    """

    outcome: Outcome
    bound: float = float("-inf")
    interrupted: bool = False
    _values: Mapping[str, float] | None = field(default=None, repr=False)

    @property
    def values(self) -> Mapping[str, float]:
        """Values of the variables by name.

        Raises
        ------
        SolverFailedError
            There is no solution.
        """
        if self._values is None:
            raise SolverFailedError(f"there is no solution to read: {self.outcome.value}")
        return self._values


@dataclass(frozen=True, slots=True, kw_only=True)
class MipSolver:
    """A solver and what it can do.

    Parameters
    ----------
    name : str
        Its name.
    time_limit, gap, nodes, threads, bound : bool
        Whether it can be given a time limit, a gap, a node limit, a number of threads, and whether it tells a bound.
    run : callable
        Minimises a PuLP model.
    """

    name: str
    time_limit: bool
    gap: bool
    nodes: bool
    threads: bool
    bound: bool
    run: Callable[[pulp.LpProblem, Effort], MipAnswer]

    def why_not(self) -> str:
        """Why the solver cannot be used, empty where it can; found out once, by solving a model of two lines."""
        return _probe(self)

    @property
    def available(self) -> bool:
        """Whether the solver can be used."""
        return not self.why_not()


@lru_cache
def _probe(solver: MipSolver) -> str:
    try:
        import pulp

        model = pulp.LpProblem("p")
        x = model.add_variable("x", 0, 9, pulp.LpInteger)
        model += x
        model += 2 * x >= 3
        answer = solver.run(model, Effort(time_limit_s=10.0))
        right = answer.outcome is Outcome.OPTIMAL and round(answer.values["x"]) == 2
    except (SolverFailedError, ImportError) as error:
        return str(error)
    return "" if right else f"a test model is {answer.outcome.value}"


def solver_named(name: str) -> MipSolver:
    """Solver of a name.

    Examples
    --------
    >>> solver_named("cbc").threads, solver_named("highs").threads
    (True, False)
    """
    for solver in SOLVERS:
        if solver.name == name:
            return solver
    raise UnknownNameError("solver", str(name), [solver.name for solver in SOLVERS])


def solve_mip(model: pulp.LpProblem, effort: Effort, prefer: str = "") -> tuple[MipAnswer, MipSolver]:
    """Minimise a model by the solver that is preferred, or else by the first one that can be run.

    Parameters
    ----------
    model : pulp.LpProblem
        The model.
    effort : Effort
        Limits of the search.
    prefer : str
        Name of a solver; the order of :data:`SOLVERS` by default.

    Raises
    ------
    SolverUnavailableError
        None can be run; it says why for each.
    UnknownNameError
        No solver has that name.

    Warns
    -----
    SolverWarning
        The one that should have been used cannot be run, and why.
    """
    first = [solver_named(prefer)] if prefer else []
    tried: dict[str, str] = {}
    for solver in [*first, *(solver for solver in SOLVERS if solver not in first)]:
        why = solver.why_not()
        if not why:
            try:
                answer = solver.run(model, effort)
            except SolverFailedError as error:
                why = str(error)
        if not why:
            _warn(tried, solver.name)
            return answer, solver
        tried[solver.name] = why
    raise SolverUnavailableError(tried)


def _warn(tried: Mapping[str, str], used: str) -> None:
    if tried:
        reasons = ", ".join(f"{name} ({why})" for name, why in tried.items())
        warnings.warn(f"solver {reasons} cannot be used; {used} takes its place", SolverWarning, stacklevel=4)


# -- CBC, a program of its own ---------------------------------------------------------------------------------------

_CBC_OUTCOMES = (
    ("Optimal", Outcome.OPTIMAL),
    ("Infeasible", Outcome.INFEASIBLE),
    ("Integer infeasible", Outcome.INFEASIBLE),
    ("Stopped", Outcome.FEASIBLE),
)


def _cbc_program() -> str:
    """Path of CBC: the one that comes with PuLP, or one on the PATH."""
    from pulp.apis.coin_api import pulp_cbc_path

    bundled = Path(pulp_cbc_path).resolve()
    if os.access(bundled, os.X_OK) and bundled.is_file():
        return str(bundled)
    found = shutil.which("cbc")
    if found is None:
        state = "may not be executed" if bundled.exists() else "does not exist"
        raise SolverFailedError(f"{bundled} {state}, and there is no cbc on the PATH")
    return found


def _run_cbc(model: pulp.LpProblem, effort: Effort) -> MipAnswer:
    program = _cbc_program()
    try:
        with tempfile.TemporaryDirectory(prefix="frostline-") as folder:
            return _run_cbc_in(Path(folder), program, model, effort)
    except OSError as error:
        raise SolverFailedError(str(error)) from error


def _run_cbc_in(folder: Path, program: str, model: pulp.LpProblem, effort: Effort) -> MipAnswer:
    problem, solution, log = (folder / name for name in ("model.mps", "model.sol", "log"))
    _, names, *_ = model.writeMPS(str(problem), rename=True)
    settings = {
        "-sec": effort.time_limit_s,
        "-timeMode": "elapsed",
        "-ratio": effort.gap,
        "-allow": 0,
        "-threads": effort.threads if effort.threads > 1 else 0,
        "-maxNodes": effort.nodes,
        "-integerTolerance": _TOLERANCE,
        "-primalTolerance": _TOLERANCE,
    }
    options = [str(part) for pair in settings.items() for part in pair]
    command = [program, str(problem), *options, "-solve", "-printingOptions", "all", "-solution", str(solution)]
    with log.open("wb") as output:
        ended = _run_program(command, output, effort.time_limit_s + _GRACE_S)
    if not ended or not solution.exists():
        return MipAnswer(outcome=Outcome.NOTHING_FOUND)
    return _cbc_answer(solution.read_text("utf-8"), log.read_text("utf-8", "replace"), names)


def _run_program(command: Sequence[str], output: Any, time_limit_s: float) -> bool:
    """Whether a program ended by itself; it never outlives this call."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        status = process.wait(time_limit_s)
    except subprocess.TimeoutExpired:
        return False
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if status:
        raise SolverFailedError(f"{command[0]} ended with status {status}")
    return True


def _cbc_answer(solution: str, log: str, names: Mapping[str, str]) -> MipAnswer:
    """Answer from the solution file, and from the log, which has the bound of a search that was stopped."""
    head, *lines = solution.splitlines() or [""]
    outcome = next((outcome for word, outcome in _CBC_OUTCOMES if head.startswith(word)), Outcome.NOTHING_FOUND)
    if "no integer solution" in head:
        outcome = Outcome.NOTHING_FOUND
    bound = _after(log, "Lower bound:")
    if outcome is Outcome.OPTIMAL and bound is None:
        bound = _after(head, "objective value")
    if outcome not in (Outcome.OPTIMAL, Outcome.FEASIBLE):
        return MipAnswer(outcome=outcome)
    # Number, name, value, price; two stars before them mark a value outside its bounds.
    rows = (line.replace("**", "", 1).split() for line in lines)
    found = {words[1]: float(words[2]) for words in rows if len(words) > 2}
    values = {name: found.get(short, 0.0) for name, short in names.items()}
    return MipAnswer(outcome=outcome, bound=float("-inf") if bound is None else bound, _values=values)


def _after(text: str, words: str) -> float | None:
    """Number that follows some words."""
    rest = text.partition(words)[2]
    try:
        return float(rest.split()[0])
    except (IndexError, ValueError):
        return None


# -- HiGHS, a library ------------------------------------------------------------------------------------------------

_HIGHS_OUTCOMES = {
    "kOptimal": Outcome.OPTIMAL,
    "kInfeasible": Outcome.INFEASIBLE,
    "kUnboundedOrInfeasible": Outcome.INFEASIBLE,
    "kModelError": Outcome.INVALID_MODEL,
    "kLoadError": Outcome.INVALID_MODEL,
}
_HIGHS_SOLUTION_IS_FEASIBLE = 2


def _run_highs(model: pulp.LpProblem, effort: Effort) -> MipAnswer:
    try:
        import highspy
        import pulp
    except ImportError as error:
        raise SolverFailedError(str(error)) from error

    # The class below highspy.Highs: that one prints a banner when it is made.
    solver = highspy.Highs.__bases__[0]()
    settings = {
        "output_flag": False,
        "threads": 1,  # all solvers of a process share their threads
        "time_limit": effort.time_limit_s,
        "mip_max_nodes": effort.nodes,
        "mip_rel_gap": effort.gap,
        "mip_abs_gap": 0.0,
        "mip_feasibility_tolerance": _TOLERANCE,
        "primal_feasibility_tolerance": _TOLERANCE,
    }
    for name, value in settings.items():
        solver.setOptionValue(name, value)
    model.solverModel = solver
    try:
        pulp.HiGHS(msg=False).buildSolverModel(model)
    finally:
        model.solverModel = None
    interrupted = _run_with_stop(solver)
    return _highs_answer(solver, [variable.name for variable in model.variables()], interrupted)


def _run_with_stop(solver: Any) -> bool:
    """Run HiGHS until it ends or Ctrl-C stops it; whether that was so. It has the best so far."""
    from highspy import cb

    stop = threading.Event()

    def asked(_kind: object, _message: str, _out: object, answer: Any, _data: object) -> None:
        if stop.is_set():
            answer.user_interrupt = True

    solver.setCallback(asked, None)
    for kind in (cb.HighsCallbackType.kCallbackMipInterrupt, cb.HighsCallbackType.kCallbackSimplexInterrupt):
        solver.startCallback(kind)
    return run_interruptibly(solver.run, stop.set)[1]


def _highs_answer(solver: Any, names: Sequence[str], interrupted: bool) -> MipAnswer:
    info = solver.getInfo()
    found = info.primal_solution_status == _HIGHS_SOLUTION_IS_FEASIBLE
    stopped = Outcome.FEASIBLE if found else Outcome.NOTHING_FOUND
    outcome = _HIGHS_OUTCOMES.get(solver.getModelStatus().name, stopped)
    if outcome not in (Outcome.OPTIMAL, Outcome.FEASIBLE):
        return MipAnswer(outcome=outcome, interrupted=interrupted)
    values = dict(zip(names, solver.getSolution().col_value, strict=True))
    return MipAnswer(outcome=outcome, bound=float(info.mip_dual_bound), interrupted=interrupted, _values=values)


SOLVERS = (
    MipSolver(name="highs", time_limit=True, gap=True, nodes=True, threads=False, bound=True, run=_run_highs),
    MipSolver(name="cbc", time_limit=True, gap=True, nodes=True, threads=True, bound=True, run=_run_cbc),
)
"""Solvers of mixed-integer models, the one that is tried first first."""
