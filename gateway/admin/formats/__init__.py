"""How dates and times are written for staff, whatever the language."""
