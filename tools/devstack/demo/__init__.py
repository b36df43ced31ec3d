"""
Demo data: generated users with weeks of history, for the admin's pages.

The product's services write every row, with the time passed in. Where a service uses PostgreSQL's clock,
`devstack.demo.clock` moves the rows back afterwards.
"""
