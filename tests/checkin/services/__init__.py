"""Tests of what checks in and publishes."""
