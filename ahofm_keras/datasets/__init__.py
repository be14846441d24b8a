"""Simulated data of the paper, and its seven data sets."""

from ahofm_keras.datasets.loading import Dataset, load
from ahofm_keras.datasets.simulations import TOY_SIZES, Simulation, simulate_toy

__all__ = ["TOY_SIZES", "Dataset", "Simulation", "load", "simulate_toy"]
