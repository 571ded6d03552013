# SPDX-License-Identifier: Apache-2.0
"""Data sets of LeRobot: read and written, without its package."""
