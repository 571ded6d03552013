# SPDX-License-Identifier: Apache-2.0
"""Measures: training by a recipe, calibration, methods, rollouts, figures as numbers."""
