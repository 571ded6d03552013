# SPDX-License-Identifier: Apache-2.0
"""The last layer before the command is sent: commands are finite and within every limit.

It does not depend on ROS, or on the source of an action.
"""
