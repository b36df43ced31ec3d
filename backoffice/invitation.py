"""The page of an invitation, on which a member of staff chooses a password that no other person sees."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from backoffice import second_factor
from gateway.common import clock
from users.models import User
from users.services import invitations, second_factors
from users.services.invitations import Outcome


def _password(label: str, help_text: str = "") -> forms.CharField:
    widget = UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"})
    return forms.CharField(label=label, help_text=help_text, strip=False, max_length=200, widget=widget)


class InvitationForm(forms.Form):
    """The code, and the new password twice."""

    code = forms.CharField(
        label="Code",
        max_length=20,
        help_text="From the colleague who approved your account or your reset.",
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", "autofocus": ""}),
    )
    password = _password("New password", "At least 12 characters, and not a common password.")
    again = _password("New password again")

    def __init__(self, *args: Any, person: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._person = person

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        validate_password(password, self._person)
        return password

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if "password" in values and values["password"] != values.get("again"):
            raise ValidationError({"again": "The two passwords differ."})
        return values


@never_cache
@csrf_protect
def page(request: HttpRequest, token: str) -> HttpResponse:
    """Ask for the code and a password; then redirect to setting up a phone, or to the login."""
    invitation = invitations.invited_by(token)
    if invitation is None:
        return _shown(request, None, status=404)
    form = InvitationForm(request.POST or None, person=invitation.user)
    if form.is_valid():
        values = form.cleaned_data
        outcome = invitations.accept(token=token, code=values["code"], password=values["password"])
        if outcome is Outcome.ACCEPTED:
            return _accepted(request, invitation.user)
        form.add_error("code", "That code is wrong. After five wrong codes, the link is closed.")
    return _shown(request, form)


def _accepted(request: HttpRequest, person: User) -> HttpResponse:
    person.refresh_from_db()
    if second_factors.must_enrol(person, now=clock.now()):
        second_factor.begin(request, person)
        return HttpResponseRedirect(reverse("admin:enrol"))
    messages.success(request, "Your password is set. Log in with it and your phone.")
    return HttpResponseRedirect(reverse("admin:login"))


def _shown(request: HttpRequest, form: InvitationForm | None, *, status: int = 200) -> HttpResponse:
    title = "Choose your password" if form else "This link is closed"
    context = {**admin.site.each_context(request), "title": title, "form": form}
    return TemplateResponse(request, "backoffice/invitation.html", context, status=status)
