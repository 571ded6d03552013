# SPDX-License-Identifier: Apache-2.0
"""Training, evaluation, simulation, benchmarks, reports: the first user of what adahi_ros offers others."""
