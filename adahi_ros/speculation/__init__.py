"""Decides when to ask the target, and corrects the draft by its answer. Knows no ROS and no torch."""
