# SPDX-License-Identifier: Apache-2.0
"""rosbag2 in and out, without ROS: recordings become training data, calibrations and reports."""
