"""Services that change sponsors, their members, keys and policies, and the usage that their calls count."""
