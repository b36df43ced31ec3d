"""No rows of its own. Django tells only apps with this module that migrations have run, which the roles wait for."""
