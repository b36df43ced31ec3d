"""Reading the rows of the relay: before a call is accepted, for its owner, and for metrics. Nothing here writes."""
