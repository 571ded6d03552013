"""Nodes that stand in for a robot."""
