"""Recomputes draws of check-ins: python3 recompute_draws.py < fairness.json, a response of checkInFairness."""

import hashlib
import hmac
import json
import sys
from decimal import Decimal

answer = json.load(sys.stdin)
tables = {table["id"]: table for table in answer["tables"]}
seeds = {row["day"]: bytes.fromhex(row["seed"]) for row in answer["revealed"]}
assert all(hashlib.sha256(seeds[row["day"]]).hexdigest() == row["commitment"] for row in answer["revealed"])


def throw(seed, message, outcomes, counter=0):
    digest = hmac.new(seed, f"{message}:{counter}".encode(), "sha256").digest()
    number = int.from_bytes(digest[:8], "big")
    fair = number < 2**64 - 2**64 % outcomes
    return number % outcomes if fair else throw(seed, message, outcomes, counter + 1)


for draw in answer["draws"]:
    names = "+".join(f"{number}v{tables[number]['version']}" for number in draw["tables"])
    name = f"check-in:{answer['profileAddress']}:{draw['day']}:{draw['attempt']}:{names}"
    items = [item for number in draw["tables"] for item in tables[number]["items"]]
    items = [item for item in items if item["type"] == "EXPERIENCE" or not draw["experienceOnly"]]
    items = [item for item in items if item.get("streakDays", 0) <= (draw["streak"] or 0)]
    for place, (item, shown) in enumerate(zip(items, draw["possibleResults"], strict=True)):
        step = Decimal(1) if item["type"] in ("EXPERIENCE", "CREDITS") else Decimal("0.0001")
        outcomes = int((Decimal(item["valueMax"]) - Decimal(item["valueMin"])) / step) + 1
        value = Decimal(item["valueMin"]) + step * throw(
            seeds[draw["day"]], f"{name}:value:{place}", outcomes
        )
        assert (item["type"], value) == (shown["type"], Decimal(str(shown["value"]))), (draw, shown)
    bag = [place for place, item in enumerate(items) for _ in range(item["weight"])]
    chosen = bag[throw(seeds[draw["day"]], f"{name}:choice", len(bag))]
    assert draw["possibleResults"][chosen] == draw["result"], draw
    print(draw["day"], draw["attempt"], draw["result"])
