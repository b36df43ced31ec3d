"""Rehearsals of an operator's work on a stack under load: restore, upgrade."""
