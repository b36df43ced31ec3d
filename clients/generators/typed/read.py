"""Read with openapi-python-client."""

import json
from pathlib import Path

from generated.models import Quota, UnsignedTransaction

quota = Quota.from_dict(json.loads(Path("quota.json").read_text()))
transaction = UnsignedTransaction.from_dict(json.loads(Path("transaction.json").read_text()))
assert (quota.quota, int(transaction.nonce)) == (2**40, 2**130)
print(f"openapi-python-client: balance {quota.quota}, nonce {transaction.nonce}")
