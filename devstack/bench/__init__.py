"""Benchmarks: what the hot paths cost, as ratios to the bare machine in the same run."""

from devstack.bench.report import bench

__all__ = ["bench"]
