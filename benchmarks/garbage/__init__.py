"""The parts of the trial with garbage; `benchmarks/garbage.py` is its command."""
