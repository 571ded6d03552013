# SPDX-License-Identifier: Apache-2.0
"""Spec-VLA (arXiv 2507.22424): a draft near the target's action stands."""
