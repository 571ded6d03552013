# SPDX-License-Identifier: Apache-2.0
"""Measures methods in simulation: rollouts, metrics, comparisons."""
