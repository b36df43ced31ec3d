"""What measures the product, breaks it, or rehearses its operation: `python -m lab`."""
