# SPDX-License-Identifier: Apache-2.0
"""The topics and fields of a robot's observation and action, in one file for all parts of the system.

Recording, dataset, training, nodes and replay read messages through the same code. It accepts the messages of
rclpy and of the library rosbags, which have the same attributes, and imports neither.
"""
