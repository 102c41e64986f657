"""Streams of votes: simulated ones with their truth, and the data of published experiments."""

from driftvote.streams.scenarios import (
    SCENARIOS,
    Scenario,
    SimulatedStream,
    paper_blocks,
    permute,
    scenario,
    simulate,
    swap,
)

__all__ = ["SCENARIOS", "Scenario", "SimulatedStream", "paper_blocks", "permute", "scenario", "simulate", "swap"]
