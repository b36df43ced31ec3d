"""The lowest layer: errors, problem documents, fields, leases, metrics. It imports no app."""
