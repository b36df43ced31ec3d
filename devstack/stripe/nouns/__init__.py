"""The doors under `/v1`, one file per noun."""
