# SPDX-License-Identifier: Apache-2.0
"""Speculative decoding on several machines, by a simulated clock and by threads."""
