"""The ground floor: errors, problem documents, fields, enqueueing. It knows no app."""
