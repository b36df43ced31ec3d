"""POST /webhooks/stripe: the raw bytes are checked and stored; a worker does the rest."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from gateway.common.errors import DomainError
from gateway.common.problems import for_methods, json_problem
from payments.services import inbox


@csrf_exempt
@for_methods("POST")
def stripe_webhook(request: HttpRequest) -> HttpResponse:
    """Answer 200 once the event is stored, 400 to anything that Stripe did not sign for us just now."""
    try:
        inbox.receive(
            body=request.body, signature=request.headers.get("Stripe-Signature", ""), now=timezone.now()
        )
    except DomainError as refusal:
        return json_problem(refusal)
    return JsonResponse({"received": True})
