# SPDX-License-Identifier: Apache-2.0
"""Policies that emit a chunk of actions as tokens, one after another, as OpenVLA does."""
