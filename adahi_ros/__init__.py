"""Action deviation-aware hybrid inference (ADAHI) for robots on ROS 2."""
