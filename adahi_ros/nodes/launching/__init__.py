# SPDX-License-Identifier: Apache-2.0
"""Nodes as processes, and a place in a domain from which to steer them."""
