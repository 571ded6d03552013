# SPDX-License-Identifier: Apache-2.0
"""Gates decide when to send a request: scores, their calibration, and its file."""
