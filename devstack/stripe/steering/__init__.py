"""The parts of the client of the controls."""
