"""Which hosts there are: what each has is in `devstack.cluster.stack`."""

from devstack.cluster.network import Host

DATABASES = (Host("db1", 11), Host("db2", 12), Host("db3", 13))
WEBS = (Host("web1", 21), Host("web2", 22), Host("web3", 23))
WORKERS = (Host("work1", 31), Host("work2", 32))
FRONT = Host("front", 51)
ALL = (*DATABASES, *WEBS, *WORKERS, FRONT)
