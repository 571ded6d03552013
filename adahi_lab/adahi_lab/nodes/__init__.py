# SPDX-License-Identifier: Apache-2.0
"""Nodes that simulate or measure."""
