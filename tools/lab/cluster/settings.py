"""
The configuration files of the cluster's servers, as functions of addresses.

The timeouts are sensible first values for an operator. Patroni replaces a lost host after `ttl` seconds (minimum 20),
and a dead PostgreSQL within `loop_wait`.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from devstack.services.postgres import APPLICATION_ROLE, DATABASE
from lab.cluster.network import Host

POSTGRES_PORT, PATRONI_PORT, ETCD_PORT, ETCD_PEER_PORT = 5432, 8008, 2379, 2380
PRIMARY_PORT, READING_PORT, POOL_PORT, WEB_PORT, SIGNER_PORT = 5000, 5001, 6432, 8000, 8443
REDIS_PORT, SENTINEL_PORT = 6379, 26379
REDIS_SERVICE = "gateway"
# PgBouncer's name of the database on a readable server.
READING_DATABASE = "gateway_reading"
# The maximum lag of a readable standby, in bytes of WAL.
_LARGEST_LAG = "1MB"


def etcd_arguments(host: Host, hosts: Sequence[Host], data: Path) -> list[str]:
    """Return the arguments of one member; timeouts are long because the machine is busy."""
    peers = ",".join(f"{each.name}=http://{each.address}:{ETCD_PEER_PORT}" for each in hosts)
    client, peer = f"http://{host.address}:{ETCD_PORT}", f"http://{host.address}:{ETCD_PEER_PORT}"
    return [
        *("--name", host.name, "--data-dir", str(data), "--initial-cluster", peers),
        *("--listen-client-urls", client, "--advertise-client-urls", client),
        *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
        *("--heartbeat-interval", "250", "--election-timeout", "2500", "--logger", "zap"),
    ]


def patroni(
    host: Host,
    hosts: Sequence[Host],
    *,
    folder: Path,
    binaries: Path,
    template: Path,
    password: str,
    synchronous: bool = True,
) -> str:
    """
    Return Patroni's configuration, as JSON, which is YAML.

    A `synchronous` commit is always on a second host before it is acknowledged (`strict`). A primary whose PostgreSQL
    has died releases the leader lock at once.
    """
    login = {"password": password}
    network = f"{host.address.rsplit('.', 1)[0]}.0/24"
    rules = [
        *("local all all trust", f"host all all {host.address}/32 scram-sha-256"),
        *(f"host {what} all {network} scram-sha-256" for what in ("all", "replication")),
    ]
    everywhere = {
        "ttl": 20,
        "loop_wait": 2,
        "retry_timeout": 4,
        "maximum_lag_on_failover": 2**20,
        "primary_start_timeout": 0,
        "synchronous_mode": "quorum" if synchronous else "off",
        "synchronous_mode_strict": synchronous,
        "synchronous_node_count": 1,
        "postgresql": {
            "use_pg_rewind": True,
            "parameters": {"max_connections": 200, "timezone": "UTC", "wal_keep_size": "256MB"},
        },
    }
    return json.dumps(
        {
            "scope": "gateway",
            "name": host.name,
            "restapi": _listening(host, PATRONI_PORT),
            "etcd3": {"hosts": [f"{each.address}:{ETCD_PORT}" for each in hosts]},
            "bootstrap": {
                "dcs": everywhere,
                "method": "copy",
                "copy": {"command": f"cp -a {template} {folder / 'data'}", "no_params": True},
            },
            "postgresql": {
                **_listening(host, POSTGRES_PORT),
                "data_dir": str(folder / "data"),
                "bin_dir": str(binaries),
                "pgpass": str(folder / "pgpass"),
                "pg_hba": rules,
                "parameters": {"unix_socket_directories": ""},
                "authentication": {
                    "superuser": {"username": "postgres", **login},
                    "replication": {"username": "replicator", **login},
                },
            },
        },
        indent=1,
    )


def balancer(databases: Sequence[Host], webs: Sequence[Host] = ()) -> str:
    """
    Return HAProxy's configuration: PRIMARY_PORT connects to the primary, WEB_PORT to one of `webs`, if any.

    READING_PORT connects to the primary or a standby with little lag. HAProxy asks Patroni for each server's role and
    closes sessions with a server that has lost it.
    """
    lines = [
        "global",
        "    maxconn 2000",
        "defaults",
        "    timeout connect 2s",
        "    timeout client 30m",
        "    timeout server 30m",
        *_databases("primary", PRIMARY_PORT, "/primary", databases, is_open=bool(webs)),
        *_databases("reading", READING_PORT, f"/read-only?lag={_LARGEST_LAG}", databases, is_open=False),
    ]
    if webs:
        lines += [
            "listen web",
            f"    bind *:{WEB_PORT}",
            "    mode http",
            "    option forwardfor",
            "    timeout server 60s",
            # HAProxy retries only failed connections; callers retry requests that a server may have read.
            "    option redispatch 1",
            "    retries 2",
            "    retry-on conn-failure",
            "    option httpchk",
            f"    http-check send meth GET uri /healthz ver HTTP/1.1 hdr Host {webs[0].address}",
            "    default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions",
            *(f"    server {each.name} {each.address}:{WEB_PORT} check" for each in webs),
        ]
    return "\n".join(lines) + "\n"


def _databases(name: str, port: int, question: str, databases: Sequence[Host], *, is_open: bool) -> list[str]:
    return [
        f"listen {name}",
        f"    bind {'*' if is_open else '127.0.0.1'}:{port}",
        "    mode tcp",
        f"    option httpchk OPTIONS {question}",
        "    http-check expect status 200",
        "    default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions",
        *(
            f"    server {each.name} {each.address}:{POSTGRES_PORT} check port {PATRONI_PORT}"
            for each in databases
        ),
    ]


def pooler(users: Path) -> str:
    """Return PgBouncer's configuration for the HAProxy of its host; it reconnects every second."""
    return f"""\
[databases]
{READING_DATABASE} = host=127.0.0.1 port={READING_PORT} dbname={DATABASE}
* = host=127.0.0.1 port={PRIMARY_PORT}

[pgbouncer]
pool_mode = transaction
listen_addr = 127.0.0.1
listen_port = {POOL_PORT}
unix_socket_dir =
auth_type = trust
auth_file = {users}
max_client_conn = 500
default_pool_size = 20
server_connect_timeout = 3
server_login_retry = 1
query_wait_timeout = 5
"""


def pooler_users(password: str) -> str:
    """Return PgBouncer's users and their passwords for PostgreSQL."""
    return f'"{APPLICATION_ROLE}" "{password}"\n'


def redis(host: Host, first: Host, data: Path) -> str:
    """Return a Redis's initial configuration, a replica of the first; Sentinels rewrite the file."""
    copies = "" if host == first else f"replicaof {first.address} {REDIS_PORT}\n"
    return f"""\
bind {host.address}
port {REDIS_PORT}
dir {data}
save ""
appendonly no
protected-mode no
{copies}"""


def sentinel(host: Host, first: Host) -> str:
    """Return a Sentinel's initial configuration; it rewrites the file."""
    return f"""\
bind {host.address}
port {SENTINEL_PORT}
protected-mode no
sentinel monitor {REDIS_SERVICE} {first.address} {REDIS_PORT} 2
sentinel down-after-milliseconds {REDIS_SERVICE} 3000
sentinel failover-timeout {REDIS_SERVICE} 10000
"""


def redis_url(hosts: Sequence[Host]) -> str:
    """Return the URL of the Redis master."""
    places = ",".join(f"{each.address}:{SENTINEL_PORT}" for each in hosts)
    return f"redis+sentinel://{places}/{REDIS_SERVICE}"


def _listening(host: Host, port: int) -> dict[str, str]:
    place = f"{host.address}:{port}"
    return {"listen": place, "connect_address": place}
