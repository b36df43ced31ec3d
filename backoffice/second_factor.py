"""
The staff member's own second factor: set up at the first login, with recovery codes; later moved to another phone.

A correct password alone does not log in a person without a second factor: the session only remembers the person for
some minutes, which the page to set up a phone requires.
"""

import time
from datetime import datetime
from functools import partial
from typing import Any

import segno
from django import forms
from django.contrib import admin, messages
from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django_otp.middleware import is_verified
from unfold.widgets import UnfoldAdminTextInputWidget

from gateway.admin.mixins import staff_of
from gateway.common import clock
from users.models import RecoveryCodes, User
from users.services import second_factors

_ENROLLING = "staff_enrolling"
_SECONDS = 15 * 60
_BACKEND = "django.contrib.auth.backends.ModelBackend"


class TokenForm(forms.Form):
    """A code from the phone."""

    token = forms.CharField(
        label="Code shown by the phone",
        max_length=40,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "one-time-code", "autofocus": ""}),
    )


def begin(request: HttpRequest, person: User) -> None:
    """Remember that this person's password was correct, so that the next page lets them set up a phone."""
    request.session.cycle_key()
    request.session[_ENROLLING] = [person.pk, int(time.time()), person.get_session_auth_hash()]


def _enrolling(request: HttpRequest) -> User | None:
    """Return the person whose password was recently entered and has not changed since."""
    pk, began, password = request.session.get(_ENROLLING, (0, 0, ""))
    person = User.objects.filter(pk=pk, is_active=True, is_staff=True).first()
    if person is None or time.time() - began > _SECONDS:
        return None
    return person if constant_time_compare(password, person.get_session_auth_hash()) else None


@never_cache
@csrf_protect
def enrol(request: HttpRequest) -> HttpResponse:
    """Show the QR code, and ask for a code from the phone; then log in and show the recovery codes, once."""
    now, person = clock.now(), _enrolling(request)
    phone = second_factors.offered_phone(person, now=now) if person else None
    if person is None or phone is None:
        return HttpResponseRedirect(reverse("admin:login"))
    form = TokenForm(request.POST or None)
    if form.is_valid():
        shown = _confirmed(request, person, form.cleaned_data["token"], now)
        if shown is not None:
            return shown
        form.add_error("token", "That code is wrong or has been used. Wait for the next one.")
    context = {
        **admin.site.each_context(request),
        "title": "Set up your second factor",
        "form": form,
        "person": person,
        "picture": segno.make(phone.config_url).svg_data_uri(scale=5, border=4, light="white"),
        "key": phone.shown_key,
    }
    return TemplateResponse(request, "backoffice/enrol.html", context)


def _confirmed(request: HttpRequest, person: User, number: str, now: datetime) -> HttpResponse | None:
    result = second_factors.confirm_phone(person, number=number, now=now)
    if result is None:
        return None
    phone, codes = result
    person.otp_device = phone  # type: ignore[attr-defined]
    # Logging in starts a new session.
    login(request, person, backend=_BACKEND)
    # django-otp's middleware does the same for later requests.
    request.user.is_verified = partial(is_verified, request.user)  # type: ignore[union-attr]
    request.session.pop(_ENROLLING, None)
    return _show_codes(request, codes)


def _show_codes(request: HttpRequest, codes: list[str]) -> HttpResponse:
    context = {**admin.site.each_context(request), "title": "Your recovery codes", "codes": codes}
    return TemplateResponse(request, "backoffice/recovery_codes.html", context)


@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """Show the person's factors; with a valid code, create new recovery codes or move to another phone."""
    person, form = staff_of(request), TokenForm(request.POST or None)
    form.fields["token"].label = "Code from your phone, or a recovery code"
    if form.is_valid():
        if second_factors.proves(person, token=form.cleaned_data["token"]):
            return _change(request, person)
        form.add_error("token", "That code is wrong or has been used. Wait for the next one.")
    codes = RecoveryCodes.objects.filter(user=person).first()
    context: dict[str, Any] = {
        **admin.site.each_context(request),
        "title": "Second factor",
        "form": form,
        "left": len(codes.hashes) if codes else 0,
    }
    return TemplateResponse(request, "backoffice/second_factor.html", context)


def _change(request: HttpRequest, person: User) -> HttpResponse:
    if request.POST.get("do") != "move":
        return _show_codes(request, second_factors.renew_codes(person))
    second_factors.offer_phone(person)
    begin(request, person)
    return HttpResponseRedirect(reverse("admin:enrol"))


def warn_of_codes(request: HttpRequest) -> None:
    """After the use of a recovery code, tell the person how to get a working second factor again."""
    device = getattr(request.user, "otp_device", None)
    if isinstance(device, RecoveryCodes):
        left = RecoveryCodes.objects.get(pk=device.pk)
        messages.warning(
            request,
            f"That recovery code has been used; {len(left.hashes)} are left. Set up a phone under Second factor.",
        )
