"""
Demo data: generated users with weeks of history, so that staff have something to look at.

The services of the product write every row, with the time passed in. Where a service uses the
clock of the database instead, `devstack.demo.clock` moves the rows back afterwards.
"""
