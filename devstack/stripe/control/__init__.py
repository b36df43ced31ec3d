"""The doors under `/_control`, for tests and demonstrations: what a merchant, a bank or a network might do."""
