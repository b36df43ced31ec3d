"""Formats of dates and times for staff."""
