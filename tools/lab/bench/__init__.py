"""Benchmarks of the hot paths, side by side with the bare machine or with another commit in the same run."""
