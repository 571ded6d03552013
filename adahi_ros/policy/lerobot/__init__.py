"""LeRobot's checkpoints and datasets, read."""
