"""Measures: training by a recipe, calibration, methods, rollouts, figures as numbers."""
