"""Programs at the ends of a link whose calls are measured."""
