# SPDX-License-Identifier: Apache-2.0
"""KERV (arXiv 2603.01581): drafts that a Kalman filter completes."""
