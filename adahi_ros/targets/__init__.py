"""Large policies of others as targets, in this process or behind their servers, each kind by a YAML file."""
