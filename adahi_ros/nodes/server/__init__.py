"""The verifier's node."""
