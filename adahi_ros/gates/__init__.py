"""Whether to ask the target now: scores, their calibration, and its file."""
