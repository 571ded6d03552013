# SPDX-License-Identifier: Apache-2.0
"""Nodes that replace a robot."""
