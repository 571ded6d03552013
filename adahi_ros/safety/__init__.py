# SPDX-License-Identifier: Apache-2.0
"""The last thing between an action and the wire: what goes out is finite and within every limit.

Knows no ROS, and nothing of where an action comes from.
"""
