# SPDX-License-Identifier: Apache-2.0
"""A small network on the robot that corrects the remaining plan using the newest observation."""
