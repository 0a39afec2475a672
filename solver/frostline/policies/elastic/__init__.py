"""Policies of elastic jobs: who holds how many GPUs, and at which freeze level, is decided anew in rounds."""

from frostline.policies.elastic.icefrog import IceFrog
from frostline.policies.elastic.optimus import Optimus
from frostline.policies.elastic.pollux import Pollux
from frostline.policies.elastic.rounds import RoundPolicy
from frostline.policies.elastic.sia import Sia

__all__ = ["IceFrog", "Optimus", "Pollux", "RoundPolicy", "Sia"]
