"""Balance transactions: every movement of the account's money, with its fee and what caused it."""

import stripe

from accounts import StripeAccount


def test_balance_transactions_are_listed_with_their_sources(account: StripeAccount, amount: int) -> None:
    intent = account.payment_intent_of(account.subscribe(account.create_paying_customer(), amount))
    refund = account.v1.refunds.create({"payment_intent": intent, "amount": 70})

    listed = account.v1.balance_transactions.list({"expand": ["data.source"], "limit": 100})
    ours = [
        row
        for row in listed.auto_paging_iter()
        if isinstance(row.source, stripe.Charge | stripe.Refund) and row.source.payment_intent == intent
    ]

    assert [(row.type, row.amount) for row in ours] == [("refund", -70), ("charge", amount)]
    assert ours[0].source is not None
    assert all(row.net == row.amount - row.fee for row in ours)
    assert isinstance(ours[0].source, stripe.Refund)
    assert ours[0].source.id == refund.id
