"""The signer: what it signs, and what no caller can make it sign."""
