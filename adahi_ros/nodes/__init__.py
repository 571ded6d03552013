"""The ROS 2 nodes, and the only code that imports ROS."""
