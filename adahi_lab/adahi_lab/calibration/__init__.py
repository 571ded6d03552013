# SPDX-License-Identifier: Apache-2.0
"""Thresholds and correctors from recordings and bags."""
