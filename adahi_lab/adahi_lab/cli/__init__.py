# SPDX-License-Identifier: Apache-2.0
"""Verbs for the lab: training, evaluation, benchmarks and reports."""
