# SPDX-License-Identifier: Apache-2.0
"""Starts nodes as processes, and checks launch arguments."""
