# SPDX-License-Identifier: Apache-2.0
"""Encoders of pictures: their networks, written as files that a robot runs."""
