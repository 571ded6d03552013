# SPDX-License-Identifier: Apache-2.0
"""WISV (arXiv 2604.17701): verification by hidden states, across a wireless channel."""
