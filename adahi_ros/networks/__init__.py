"""What every trained network needs: checkpoint files, ONNX, fitting."""
