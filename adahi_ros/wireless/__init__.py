"""Measures what crosses an emulated link."""
