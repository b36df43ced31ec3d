"""Getting stored attempts mined: broadcast, replacement, cancellation, the worker's loops, and relayer funding."""
