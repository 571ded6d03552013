# SPDX-License-Identifier: Apache-2.0
"""Cameras: image messages to arrays, JPEG, and the frozen encoder from frames to features."""
