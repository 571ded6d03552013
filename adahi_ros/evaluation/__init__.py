"""Measures: rollouts in process, metrics, tables and pictures."""
