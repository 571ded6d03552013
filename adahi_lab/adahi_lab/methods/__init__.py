# SPDX-License-Identifier: Apache-2.0
"""Methods by name: ours, those of papers, and a user's own."""
