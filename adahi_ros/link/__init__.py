"""Wireless links: what one is like, and one emulated between two hosts that live on this machine."""
