"""Relay calls: what was asked, how it went to the chain, what it cost."""
