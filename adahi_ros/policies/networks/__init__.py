# SPDX-License-Identifier: Apache-2.0
"""Shared parts of trained networks: checkpoint files, ONNX."""
