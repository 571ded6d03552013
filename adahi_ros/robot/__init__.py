"""One control step on the robot: decides, and knows no ROS, no clock and no thread."""
