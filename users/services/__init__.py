"""
Sign-in, sessions and the users of profiles.

What asks the chain raises `NodeUnavailable` where no node answers; what returns a user or a session raises
`AccountInactive` where support has closed the account.
"""
