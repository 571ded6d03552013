# SPDX-License-Identifier: Apache-2.0
"""What every trained network needs: checkpoint files, ONNX, fitting."""
