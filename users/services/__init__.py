"""
Sign-in, sessions and the users of profiles.

A function that reads the chain raises `NodeUnavailable` if no node responds; one that returns a user or a session
raises `AccountInactive` if support has closed the account.
"""
