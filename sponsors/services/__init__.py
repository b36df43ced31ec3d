"""Services that change sponsors, their members, keys and policies, and the usage of policies."""
