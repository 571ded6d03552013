# SPDX-License-Identifier: Apache-2.0
"""What proposes actions on the robot, by name."""
