"""
The postbacks of ad networks and their proofs: one adapter per network.

An adapter turns the bytes of a request into an event, or refuses them. It touches
neither the records nor the clock; secrets and verifier keys are handed to it.
"""
