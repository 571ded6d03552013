# SPDX-License-Identifier: Apache-2.0
"""Training, evaluation, simulation, benchmarks and reports; no room outside of it imports it."""
