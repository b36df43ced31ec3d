"""Benchmarks: what the hot paths cost, side by side with the bare machine or with another commit in the same run."""
