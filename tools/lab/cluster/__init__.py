"""
`python -m lab cluster`: a cluster of many hosts, simulated on one machine.

A host is a network namespace on an isolated bridge. Three hosts run PostgreSQL under Patroni, etcd, Redis and a
Sentinel. Web, workers and clocks have separate hosts, with PgBouncer and HAProxy on each. The node, the Stripe double
and the signer run outside of the cluster. It requires root.

`python -m lab cluster-test` kills, stalls and cuts off parts of the cluster under load; others must take over.
"""
