# SPDX-License-Identifier: Apache-2.0
"""How commands leave for a robot's controllers: one file per type of message or ROS action."""
