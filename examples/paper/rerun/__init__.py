"""What the experiments share: simulation, fits, boosting, tables and pictures."""
