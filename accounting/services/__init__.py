"""The services that prepare and close months, and store rates of the coin."""
