# SPDX-License-Identifier: Apache-2.0
"""What travels between robot and server, without ROS: requests, replies, windows of observations, records."""
