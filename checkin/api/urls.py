"""Routes of the check-in; each works with and without a trailing slash."""

from django.urls import re_path

from checkin.api.views import CheckInDropsView, CheckInFairnessView, ExecuteCheckInView

urlpatterns = [
    re_path(r"^api/user/checkInDrops/?$", CheckInDropsView.as_view()),
    re_path(r"^api/user/executeCheckIn/?$", ExecuteCheckInView.as_view()),
    re_path(r"^api/user/checkInFairness/?$", CheckInFairnessView.as_view()),
]
