# SPDX-License-Identifier: Apache-2.0
"""Reads and writes rosbag2 without ROS, for training data, calibrations and reports."""
