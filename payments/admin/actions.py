"""What support and finance do about payments, each through its service."""

from django import forms
from django.utils import timezone
from unfold.widgets import UnfoldBooleanSwitchWidget

from gateway.common.decisions import Decision, ReasonedAction, ReasonForm
from payments.models import ReconciliationRun, StripeEvent, Subscription
from payments.services import events, reconcile, subscriptions


def _process_again(row: StripeEvent, decision: Decision) -> str:
    count = events.process_again(events=StripeEvent.objects.filter(pk=row.pk), now=timezone.now())
    return "It will be tried now." if count else "It was processed meanwhile."


PROCESS_AGAIN = ReasonedAction(
    name="process_again",
    label="Process again",
    permission="payments.process_stripeevent",
    effect=lambda row: "Its object is read from Stripe afresh and applied now. Nothing is applied twice.",
    run=_process_again,
    applies_to=lambda row: row.status != StripeEvent.Status.PROCESSED,
)


def _dismiss(row: StripeEvent, decision: Decision) -> str:
    dismissed = events.dismiss(event_id=row.pk, now=timezone.now())
    return "It is not tried any more." if dismissed else "It was processed meanwhile."


DISMISS = ReasonedAction(
    name="dismiss",
    label="Dismiss",
    permission="payments.dismiss_stripeevent",
    effect=lambda row: (
        f"It is not tried any more, and nothing of it is applied. After {row.attempts} tries: {row.last_error}"
    ),
    run=_dismiss,
    applies_to=lambda row: row.status == StripeEvent.Status.FAILED,
)


class CancelForm(ReasonForm):
    """When it ends."""

    immediately = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Ends the allowance at once, without a refund. Otherwise it ends with the running period.",
    )
    field_order = ("immediately", "reason")


def _cancel(row: Subscription, decision: Decision) -> str:
    ended = subscriptions.cancel(
        user=row.user, immediately=decision.answers["immediately"], now=timezone.now()
    )
    return (
        f"It is {ended.get_status_display()} now."
        if decision.answers["immediately"]
        else "It ends with its period."
    )


CANCEL_SUBSCRIPTION = ReasonedAction(
    name="cancel",
    label="Cancel the subscription",
    permission="payments.cancel_subscription",
    effect=lambda row: (
        f"It ends at Stripe, with its period ({row.current_period_end:%Y-%m-%d %H:%M} UTC) or at once. "
        "Credits stay."
    ),
    run=_cancel,
    form=CancelForm,
    reaches_out=True,
    applies_to=lambda row: row.status not in Subscription.ENDED,
)


def _reconcile(row: ReconciliationRun, decision: Decision) -> str:
    reconcile.ask_for_a_run()
    return "A worker is asked to compare; the run appears in this list."


RUN_RECONCILIATION = ReasonedAction(
    name="run",
    label="Run now",
    permission="payments.run_reconciliation",
    subject="Stripe against our books",
    effect=lambda _: "A worker compares everything of the usual window with Stripe. It changes nothing.",
    run=_reconcile,
    reaches_out=True,
)
