"""Cameras: image messages to arrays, JPEG, and the frozen encoder from frames to features."""
