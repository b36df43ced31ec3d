"""The lowest layer: errors, problem documents, fields, leases and metrics. It imports no app."""
