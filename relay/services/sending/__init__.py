"""What gets stored attempts mined: broadcast, replacement, cancellation, the worker's loops, relayer funding."""
