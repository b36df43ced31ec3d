"""What must be true of closed months: each figure computed once more, from the rows and from Stripe alone."""

from collections import Counter
from datetime import datetime
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import Any

from django.db.models import F, Q, Sum

from accounting.models import Month
from accounting.services.closing import digest_of
from credits.lots import EXPIRY, Lots, Posting
from credits.models import CreditAccount, CreditEntry, EntrySource, ExpiringLot
from credits.queries import POSTING
from credits.services.expiry import NOTICE, lifetime
from payments.models import Clawback, MoneyReturn, Payout, Purchase
from payments.services.top_ups import COOLDOWN
from relay.models import Attempt, TopUp
from sponsors.models import SponsoredCall
from tests.accounting.timeline import Timeline, sheet, total, without_zeros
from users.models import AccountDeletion

Sums = Counter[tuple[str, str, str]]
_CHARGED = F("amount_minor") + F("tax_minor") + F("other_minor")


def books(until: datetime) -> Sums:
    """Return what was collected, returned, earned and lost before `until`, and is owed, by source and currency."""
    sums: Sums = Counter()
    erased = set(AccountDeletion.objects.filter(erased_at__lt=until).values_list("user_id", flat=True))
    returned, clawed = _by_payout(until)
    left = _left_by_payment(until)
    for payout in Payout.objects.filter(entry__created_at__lt=until).select_related("entry__account"):
        key = (payout.source, payout.currency)
        back = payout.amount_minor * min(returned[payout.pk], payout.charged_minor) // payout.charged_minor
        kept, sold = payout.amount_minor - back, payout.credits - clawed[payout.pk]
        unused = left[payout.entry_id]
        owed = ceil(Fraction(kept * unused, sold)) if unused else 0
        lost = owed if payout.entry.account.user_id in erased else 0
        sums["collected", *key] += payout.amount_minor
        sums["returned", *key] += back
        sums["lost", *key] += lost
        sums["owed", *key] += owed - lost
        sums["earned", *key] += kept - owed
    return sums


def _left_by_payment(until: datetime) -> dict[int, int]:
    """Return the credits that are left of each payment, by its entry."""
    accounts = CreditAccount.objects.order_by("pk")
    return {lot.entry_id: lot.remaining for account in accounts for lot in Lots(_postings(account.pk, until))}


def _by_payout(until: datetime) -> tuple[Counter[int], Counter[int]]:
    money = MoneyReturn.objects.filter(created_at__lt=until).values_list("payout").order_by("payout")
    taken = Clawback.objects.filter(entry__created_at__lt=until).values_list("payout").order_by("payout")
    returned: Counter[int] = Counter(
        dict(money.annotate(total=Sum(F("refunded_minor") + F("disputed_minor"))))
    )
    return returned, Counter(dict(taken.annotate(total=Sum(-F("entry__amount")))))


def _postings(account: int, until: datetime | None = None) -> list[Posting]:
    rows = CreditEntry.objects.filter(account=account).order_by("account_version")
    if until is not None:
        rows = rows.filter(created_at__lt=until)
    return [Posting(*row) for row in rows.values_list(*POSTING)]


def of_currencies(sums: Sums, name: str) -> Counter[str]:
    totals: Counter[str] = Counter()
    for (what, _, currency), value in sums.items():
        totals[currency] += value if what == name else 0
    return without_zeros(totals)


# --- One month


def month_ties(timeline: Timeline, month: Month, begins: datetime, ends: datetime, before: Sums) -> Sums:
    """Compare every sheet of the month; `before` has the books at its beginning. Return those at its end."""
    after = books(ends)
    moved = Counter({key: after[key] - before[key] for key in after})
    _ties_to_the_ledger(month, begins, ends)
    _ties_to_the_books(month, before, after, moved)
    _ties_to_stripe(timeline, month, begins, ends)
    _ties_to_the_chain(month, begins, ends)
    _ties_to_the_owners(month, begins, ends)
    return after


def _ties_to_the_books(month: Month, before: Sums, after: Sums, moved: Sums) -> None:
    owed = sheet(month, "liability")
    for title, wanted, sign in (
        ("opening", of_currencies(before, "owed"), 1),
        ("collected", of_currencies(moved, "collected"), 1),
        ("returned", of_currencies(moved, "returned"), -1),
        ("earned by use", of_currencies(moved, "earned"), -1),
        ("breakage", of_currencies(moved, "lost"), -1),
        ("closing", of_currencies(after, "owed"), 1),
    ):
        assert total(owed, title) == Counter({name: sign * value for name, value in wanted.items()}), title
    titles = ("opening", "correction of earlier months", "collected", "returned", "earned by use", "breakage")
    for row in owed:
        assert sum(row[title] for title in titles) == row["closing"] >= 0
        assert row["correction of earlier months"] == 0
    earned = {key[1:]: value for key, value in moved.items() if key[0] == "earned" and value}
    for name in ("sources", "people"):
        revenue: Counter[tuple[str, str]] = Counter()
        for row in sheet(month, name):
            revenue[row["source"], row["currency"]] += row["revenue"]
        assert without_zeros(revenue) == Counter(earned), name


def _ties_to_the_ledger(month: Month, begins: datetime, ends: datetime) -> None:
    kinds = {row["kind"]: row for row in sheet(month, "credits")}
    for row in kinds.values():
        assert sum(value for name, value in row.items() if name not in {"kind", "closing"}) == row["closing"]
    for title, until in (("opening", begins), ("closing", ends)):
        erased = AccountDeletion.objects.filter(erased_at__lt=until).values("user")
        rows = CreditEntry.objects.filter(created_at__lt=until).exclude(account__user__in=erased)
        assert kinds["balance"][title] == rows.aggregate(total=Sum("amount", default=0))["total"]
        assert kinds["paid"][title] >= 0 <= kinds["given"][title]
    posted = CreditEntry.objects.filter(created_at__gte=begins, created_at__lt=ends)
    by_source = dict(posted.values_list("source").annotate(total=Sum("amount")).order_by("source"))
    stated = {row["source"]: row["credits"] for row in sheet(month, "entries")}
    assert without_zeros(Counter(stated)) == without_zeros(Counter(by_source))
    assert (kinds["paid"]["expired"], kinds["given"]["expired"]) == (0, by_source.get(EXPIRY, 0))


def _ties_to_stripe(timeline: Timeline, month: Month, begins: datetime, ends: datetime) -> None:
    for name in ("charges", "refunds and disputes"):
        for row in sheet(month, name):
            assert (row["difference"], row["what differs"]) == (0, ""), name
    own = timeline.movements(begins, ends)
    assert len(sheet(month, "movements")) == len(own)
    at_stripe: Counter[tuple[str, str, str]] = Counter()
    for currency, category, *amounts in own:
        for title, amount in zip(("gross", "fees", "net"), amounts, strict=True):
            at_stripe[currency, category, title] += -amount if title == "fees" else amount
    stated = {
        (row["currency"], row["category"], title): row[title]
        for row in sheet(month, "stripe")
        for title in ("gross", "fees", "net")
    }
    assert without_zeros(Counter(stated)) == without_zeros(at_stripe)
    sold = Payout.objects.filter(entry__created_at__gte=begins, entry__created_at__lt=ends)
    ours = sold.values_list("entry__source", "currency").order_by("entry__source", "currency")
    sums = {row[:2]: row[2:] for row in ours.annotate(charged=Sum(_CHARGED), sold=Sum("credits"))}
    rows = sheet(month, "payouts")
    assert {(row["source"], row["currency"]): (row["charged"], row["credits"]) for row in rows} == sums
    assert total(rows, "charged") == total(sheet(month, "charges"), "in our rows")
    assert total(sheet(month, "tax"), "tax collected") == total(rows, "tax")
    returned = MoneyReturn.objects.filter(created_at__gte=begins, created_at__lt=ends)
    both = returned.aggregate(total=Sum(F("refunded_minor") + F("disputed_minor"), default=0))["total"]
    back = sheet(month, "returns")
    assert sum(row["refunds"] + row["disputes"] for row in back) == both
    parts = ("of it net", "of it tax", "of it other products")
    assert all(row["refunds"] + row["disputes"] == sum(row[part] for part in parts) for row in back)


def _ties_to_the_chain(month: Month, begins: datetime, ends: datetime) -> None:
    mined = Attempt.objects.filter(mined_at__gte=begins, mined_at__lt=ends)
    wei = sum((row.gas_used or 0) * (row.effective_gas_price_wei or 0) for row in mined)
    wei += sum(int(row.fee_wei or 0) for row in TopUp.objects.filter(ended_at__gte=begins, ended_at__lt=ends))
    sheets = {name: sheet(month, name) for name in ("gas", "sources", "people")}
    assert {name: sum(int(row["gas"]) for row in rows) for name, rows in sheets.items()} == dict.fromkeys(
        sheets, wei
    )
    costs = {name: total(rows, "cost" if name == "gas" else "gas cost") for name, rows in sheets.items()}
    assert costs["gas"] == costs["sources"] == costs["people"]
    for row in (*sheets["sources"], *sheets["people"]):
        assert row["margin"] == row["revenue"] - row["gas cost"]


def _ties_to_the_owners(month: Month, begins: datetime, ends: datetime) -> None:
    """Compare the used credits and the gas of each person and each sponsor."""
    used: Counter[tuple[int | None, str]] = Counter()
    for account in CreditAccount.objects.select_related("sponsor"):
        owner = (account.user_id, account.sponsor.slug if account.sponsor else "")
        for until, sign in ((begins, -1), (ends, 1)):
            lots = Lots(_postings(account.pk, until))
            used[owner] += sign * sum(lot.taken[EntrySource.RELAY_TRANSACTION] for lot in lots)
    rows = sheet(month, "people")
    stated: dict[str, Counter[tuple[int | None, str]]] = {"credits used": Counter(), "gas": Counter()}
    for row in rows:
        for title, sums in stated.items():
            sums[row["user"], row["sponsor"]] += int(row[title])
    assert without_zeros(stated["credits used"]) == without_zeros(used)
    gas = _gas_by_owner(begins, ends)
    gas[None, ""] += sum(
        int(row.fee_wei or 0) for row in TopUp.objects.filter(ended_at__gte=begins, ended_at__lt=ends)
    )
    assert without_zeros(stated["gas"]) == without_zeros(gas)


def _gas_by_owner(begins: datetime, ends: datetime) -> Counter[tuple[int | None, str]]:
    """Divide the gas of each call between its user and its sponsor, by what each was charged."""
    gas: Counter[tuple[int | None, str]] = Counter()
    mined = Attempt.objects.filter(mined_at__gte=begins, mined_at__lt=ends)
    for row in mined.select_related("relay_transaction__hold"):
        call = row.relay_transaction
        wei, own = (
            int(row.gas_used or 0) * int(row.effective_gas_price_wei or 0),
            call.hold.captured_amount or 0,
        )
        sponsored = SponsoredCall.objects.filter(hold=call.hold).select_related(
            "sponsor_hold__account__sponsor"
        )
        for other in sponsored:
            paid = other.sponsor_hold.captured_amount or 0
            part = wei * paid // (paid + own) if paid else 0
            sponsor = other.sponsor_hold.account.sponsor
            assert sponsor is not None
            gas[None, sponsor.slug] += part
            wei -= part
        gas[call.user_id, ""] += wei
    return gas


# --- All months


def months_tie(closed: list[Month]) -> None:
    """Each month opens as the one before has closed, and none has changed since."""
    for before, after in pairwise(closed):
        assert total(sheet(before, "liability"), "closing") == total(sheet(after, "liability"), "opening")
        last, first = ({row["kind"]: row for row in sheet(one, "credits")} for one in (before, after))
        assert {kind: row["closing"] for kind, row in last.items()} == {
            kind: row["opening"] for kind, row in first.items()
        }
    for month in closed:
        assert digest_of(month) == month.digest
    # Everything that was sold was returned, earned, lost, or is still owed.
    rows = [row for month in closed for row in sheet(month, "liability")]
    sums: Counter[str] = Counter()
    for title in ("collected", "returned", "earned by use", "breakage"):
        sums.update(total(rows, title))
    assert without_zeros(sums) == total(sheet(closed[-1], "liability"), "closing")


def paid_once(timeline: Timeline) -> None:
    """Nobody paid twice: each charge at Stripe is one payout, of one period or one purchase."""
    charges = timeline.charges()
    assert len(charges) == len(dict(charges))
    payouts = Payout.objects.select_related("purchase", "subscription")
    assert dict(charges) == {row.stripe_payment_intent_id: row.charged_minor for row in payouts}
    periods = Counter((row.user_id, row.period_start) for row in payouts if row.subscription_id)
    assert set(periods.values()) <= {1}
    paid = Purchase.objects.filter(status=Purchase.Status.PAID)
    assert {row.pk for row in paid} == {row.purchase_id for row in payouts if row.purchase_id}
    assert all(row.charged_minor == row.purchase.amount_minor for row in payouts if row.purchase)
    assert not Payout.objects.filter(~Q(purchase__status="paid"), purchase__isnull=False).exists()
    _within_the_consents(
        list(paid.filter(top_up__isnull=False).select_related("top_up").order_by("created_at"))
    )


def _within_the_consents(automatic: list[Purchase]) -> None:
    spent: Counter[Any] = Counter()
    last: dict[int, datetime] = {}
    for row in automatic:
        terms, user, month = row.top_up, row.user_id, f"{row.created_at:%Y-%m}"
        assert terms is not None
        spent[user, month] += row.amount_minor
        assert row.amount_minor == terms.amount_minor
        assert spent[user, month] <= terms.monthly_limit_minor
        assert terms.consented_at <= row.created_at <= (terms.withdrawn_at or row.created_at)
        if terms.pk in last:
            assert row.created_at - last[terms.pk] >= COOLDOWN
        last[terms.pk] = row.created_at


def expired_in_time(timeline: Timeline) -> None:
    """No given credit outlives its date, and no paid one expires."""
    now = timeline.expire()
    valid = lifetime(now=now)
    assert valid is not None
    announced = {row.entry_id: row for row in ExpiringLot.objects.all()}
    added = dict(CreditEntry.objects.filter(amount__gt=0).values_list("pk", "created_at"))
    for entry_id, row in announced.items():
        assert row.expires_at == max(added[entry_id] + valid, row.announced_at + NOTICE)
    assert not CreditEntry.objects.filter(source=EXPIRY, account__user=None).exists()
    for account in CreditAccount.objects.filter(sponsor=None):
        outliving = 0
        for lot in Lots(_postings(account.pk)):
            assert not (lot.is_paid and lot.taken[EXPIRY])
            assert not (lot.is_paid and lot.entry_id in announced)
            if lot.is_paid or not lot.remaining:
                continue
            if lot.entry_id not in announced:
                assert added[lot.entry_id] > now + NOTICE - valid
            elif announced[lot.entry_id].expires_at <= now:
                outliving += lot.remaining
        assert outliving <= account.held
    for key, posted_at in CreditEntry.objects.filter(source=EXPIRY).values_list("key", "created_at"):
        assert posted_at >= announced[int(key.split(":")[1])].expires_at
