"""What travels between robot and server, without ROS: requests, replies, windows of observations, records."""
