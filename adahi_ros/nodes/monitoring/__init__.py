"""Nodes that watch and record."""
