"""
`make cluster`: the service on many hosts, all of them on one machine.

A host is a network namespace on a bridge that nothing outside reaches. Three hosts have PostgreSQL under Patroni, etcd,
Redis and a Sentinel; web, workers, clocks and the signer have hosts of their own, with PgBouncer and HAProxy beside
them. The node and the payment provider's double stand outside, as they would. It takes root.
"""
