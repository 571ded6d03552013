# SPDX-License-Identifier: Apache-2.0
"""Acceptance rules: the verifier's decision about a draft."""
