"""Metrics for Prometheus: each app's own figures, read on request, the same from every process."""
