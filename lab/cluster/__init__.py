"""
`python -m lab cluster`: the service on many hosts, all of them on one machine.

A host is a network namespace on a bridge that nothing outside reaches. Three hosts have PostgreSQL under Patroni, etcd,
Redis and a Sentinel; web, workers and clocks have hosts of their own, with PgBouncer and HAProxy beside them. The node,
the payment provider's double and the signer stand outside. It takes root.

`python -m lab cluster-test` kills, stalls and cuts off its parts under load; others must replace them.
"""
