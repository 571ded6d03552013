# SPDX-License-Identifier: Apache-2.0
"""A small network on the robot that corrects what is left of the target's plan by what has happened since."""
