"""Tests of what measures the product, breaks it and rehearses its operation."""
