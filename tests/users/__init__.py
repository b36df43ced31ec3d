"""Sign-in, from the text that is signed to the HTTP door."""
