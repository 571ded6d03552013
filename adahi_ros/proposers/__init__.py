# SPDX-License-Identifier: Apache-2.0
"""Proposers of actions on the robot, by name."""
