"""In-memory stand-ins for the outside world; each passes the contract suite of its seam."""
