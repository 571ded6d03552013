# SPDX-License-Identifier: Apache-2.0
"""LeRobot's checkpoints and datasets, read."""
