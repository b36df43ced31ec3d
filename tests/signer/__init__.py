"""The signer: what it signs, and what nobody can make it sign."""
