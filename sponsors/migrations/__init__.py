"""Migrations of the sponsors' tables."""
