# SPDX-License-Identifier: Apache-2.0
"""Reads LeRobot's checkpoints and datasets."""
