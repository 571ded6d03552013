"""Shows what was measured: tables, pictures, the report."""
