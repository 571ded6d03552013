# SPDX-License-Identifier: Apache-2.0
"""Measures what crosses an emulated link."""
