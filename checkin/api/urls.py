"""Routes of the check-in."""

from checkin.api.views import CheckInViewSet
from gateway.common.routers import ApiRouter

router = ApiRouter()
router.register("api/user", CheckInViewSet, basename="check-in")
urlpatterns = router.urls
