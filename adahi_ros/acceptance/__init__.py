"""What the target says to a proposal: acceptance rules."""
