"""The HTTP door of sign-in: shape, one service, render."""
