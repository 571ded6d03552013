# SPDX-License-Identifier: Apache-2.0
"""Which topics and fields a robot's observation and action are made of: one file for all who need to know.

Recording, dataset, training, nodes and replay read messages through the same code. It takes rclpy's messages
and those of the library rosbags alike, for both have the same attributes, and imports neither.
"""
