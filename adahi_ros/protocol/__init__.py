# SPDX-License-Identifier: Apache-2.0
"""The protocol between robot and server, without ROS: requests, replies, observation windows, records."""
