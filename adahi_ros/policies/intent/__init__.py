# SPDX-License-Identifier: Apache-2.0
"""Intents: small vectors that say what the target wants, and the robot's network that acts by them."""
