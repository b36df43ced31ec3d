"""Compare the books of the stack once, so that the admin's front page shows results instead of "never compared"."""

import django


def compare() -> None:
    """Run the comparisons of every night; the front page and the log show their differences."""
    from django.utils import timezone

    from credits.services import causes
    from credits.services import reconciliation as of_the_ledger
    from payments.services import reconciliation as with_stripe
    from proofs.services import audit
    from relay.services.settling import reconciliation as with_the_chain

    for books in (of_the_ledger, causes, with_the_chain, with_stripe):
        books.reconcile(now=timezone.now())
    audit.audit(now=timezone.now())


if __name__ == "__main__":
    django.setup()
    compare()
