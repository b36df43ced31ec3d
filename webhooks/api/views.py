"""The routes of notices, and of sponsors' webhooks."""

from gateway.web.routers import ApiRouter
from sponsors.api.access import SPONSOR_PATH
from webhooks.api.endpoints import SponsorWebhookViewSet
from webhooks.api.messages import SponsorMessageViewSet
from webhooks.api.notices import NoticeEmailViewSet

router = ApiRouter()
router.register("api/user", NoticeEmailViewSet, basename="notice-email")
router.register(SPONSOR_PATH, SponsorWebhookViewSet, basename="sponsor-webhooks")
router.register(SPONSOR_PATH, SponsorMessageViewSet, basename="sponsor-messages")
urlpatterns = router.urls
