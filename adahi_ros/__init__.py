# SPDX-License-Identifier: Apache-2.0
"""Action deviation-aware hybrid inference (ADAHI) for robots on ROS 2."""

__version__ = "0.3.0"
