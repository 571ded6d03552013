"""The verifier's side: knows no ROS, no clock and no thread."""
