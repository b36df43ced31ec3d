"""
`make cluster`: the service on many hosts, all of them on one machine.

A host is a network namespace on a bridge that nothing outside reaches. Three hosts have PostgreSQL under Patroni, etcd,
Redis and a Sentinel; web, workers and clocks have hosts of their own, with PgBouncer and HAProxy beside them. The node,
the payment provider's double and the signer stand outside. It takes root.

`make cluster-test` causes faults there, under load: what is killed, stands still or is cut off, others replace.
"""
