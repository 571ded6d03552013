# SPDX-License-Identifier: Apache-2.0
"""One control step on the robot: decides, and knows no ROS, no clock and no thread."""
