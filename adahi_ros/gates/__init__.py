# SPDX-License-Identifier: Apache-2.0
"""Whether to ask the target now: scores, their calibration, and its file."""
