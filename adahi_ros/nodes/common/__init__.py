# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the nodes of several trades."""
