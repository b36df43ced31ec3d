"""The services that check users in, keep seeds, and publish tables."""
