"""Routes of sign-in."""

from gateway.common.routers import ApiRouter
from users.api.views import KeySetViewSet, SignInViewSet

router = ApiRouter()
router.register("api/auth", SignInViewSet, basename="auth")
router.register(r"\.well-known", KeySetViewSet, basename="well-known")
urlpatterns = router.urls
