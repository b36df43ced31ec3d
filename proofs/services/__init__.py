"""Close, prove, audit, export and erase."""
