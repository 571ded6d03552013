# SPDX-License-Identifier: Apache-2.0
"""Verbs for a robot: bags, contracts, fleets, keys, and monitoring."""
