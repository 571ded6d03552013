# SPDX-License-Identifier: Apache-2.0
"""LeRobot's VQ-BeT, read without LeRobot."""
