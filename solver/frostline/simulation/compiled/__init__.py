"""The compiled twin of the simulator: the same schedules from loops over arrays, for sweeps over long traces."""

from frostline.simulation.compiled.twin import NotCoveredError, Twin

__all__ = ["NotCoveredError", "Twin"]
