"""Wireless links: what one is like."""
