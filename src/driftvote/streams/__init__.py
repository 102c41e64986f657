"""Sources of rows: simulated streams with their truth, and the data of published experiments."""

from driftvote.streams.scenarios import SCENARIOS, Scenario, scenario
from driftvote.streams.synthetic import SimulatedStream, simulate

__all__ = ["SCENARIOS", "Scenario", "SimulatedStream", "scenario", "simulate"]
