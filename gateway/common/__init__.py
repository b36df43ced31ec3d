"""The lowest layer: errors, problem documents, fields, enqueueing. It knows no app."""
