"""Layer freezing: what it saves, what it costs, and which level is best."""

from frostline.freezing.belief import believed_law, spent_points, state_of, terms_of
from frostline.freezing.curve import (
    ExponentialLoss,
    LossSurface,
    MeasuredLoss,
    PowerLoss,
    TrainingCurve,
    training_curve,
    training_curves,
)
from frostline.freezing.efficiency import FullRate, PowerRate, RateEfficiency, TableRate, rates_of
from frostline.freezing.evidence import (
    GradientEvidence,
    ProgressScale,
    UnitGradient,
    differenced_moments,
    gradient_moments,
)
from frostline.freezing.frozen_graph import FreezablePlan, GradientExchange, frozen_stage_graph, frozen_time
from frostline.freezing.levels import FreezeLevels
from frostline.freezing.memory import activation_bytes, fits_memory, gpu_memory_bytes
from frostline.freezing.menu import FreezeRow, freeze_menu
from frostline.freezing.network_units import NetworkUnits, freeze_units
from frostline.freezing.optimizer import (
    Candidate,
    Choice,
    JobScale,
    Menu,
    Menus,
    Option,
    RoundRules,
    choose,
    menus_of,
    round_menu,
)
from frostline.freezing.penalty import DebtLaw, FrozenPhase, as_history, frozen_shares, level_debts_points, phases_of
from frostline.freezing.plan import LevelPhase, LevelPlan, plan_levels
from frostline.freezing.priors import DebtPrior, debt_prior, debt_priors
from frostline.freezing.profiled import LevelTimes, frozen_work
from frostline.freezing.progress import (
    FreezeMode,
    FreezeState,
    FreezeTerms,
    batch_efficiency,
    effective_progress,
    remaining_time_s,
    worth_changing,
)
from frostline.freezing.refit import FinishedRun, fit_law, refit_law
from frostline.freezing.relocation import Relocation, change_pays, place_again, place_frozen
from frostline.freezing.schedules import (
    FREEZE_SCHEDULES,
    AutoFreeze,
    FreezeOut,
    FreezeSchedule,
    NoFreezing,
    PipeTransformer,
    freeze_schedule,
    schedule_levels,
)
from frostline.freezing.trajectory import FreezeDecision, Trajectory, choose_level, freeze_trajectory, plan_trajectory
from frostline.freezing.units import FreezeUnit, FreezeUnits

__all__ = [
    "FREEZE_SCHEDULES",
    "AutoFreeze",
    "Candidate",
    "Choice",
    "DebtLaw",
    "DebtPrior",
    "ExponentialLoss",
    "FinishedRun",
    "FreezablePlan",
    "FreezeDecision",
    "FreezeLevels",
    "FreezeMode",
    "FreezeOut",
    "FreezeRow",
    "FreezeSchedule",
    "FreezeState",
    "FreezeTerms",
    "FreezeUnit",
    "FreezeUnits",
    "FrozenPhase",
    "FullRate",
    "GradientEvidence",
    "GradientExchange",
    "JobScale",
    "LevelPhase",
    "LevelPlan",
    "LevelTimes",
    "LossSurface",
    "MeasuredLoss",
    "Menu",
    "Menus",
    "NetworkUnits",
    "NoFreezing",
    "Option",
    "PipeTransformer",
    "PowerLoss",
    "PowerRate",
    "ProgressScale",
    "RateEfficiency",
    "Relocation",
    "RoundRules",
    "TableRate",
    "TrainingCurve",
    "Trajectory",
    "UnitGradient",
    "activation_bytes",
    "as_history",
    "batch_efficiency",
    "believed_law",
    "change_pays",
    "choose",
    "choose_level",
    "debt_prior",
    "debt_priors",
    "differenced_moments",
    "effective_progress",
    "fit_law",
    "fits_memory",
    "freeze_menu",
    "freeze_schedule",
    "freeze_trajectory",
    "freeze_units",
    "frozen_shares",
    "frozen_stage_graph",
    "frozen_time",
    "frozen_work",
    "gpu_memory_bytes",
    "gradient_moments",
    "level_debts_points",
    "menus_of",
    "phases_of",
    "place_again",
    "place_frozen",
    "plan_levels",
    "plan_trajectory",
    "rates_of",
    "refit_law",
    "remaining_time_s",
    "round_menu",
    "schedule_levels",
    "spent_points",
    "state_of",
    "terms_of",
    "training_curve",
    "training_curves",
    "worth_changing",
]
