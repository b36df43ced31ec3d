"""Routes of earnings."""

from earnings.api.views import AdNetworkViewSet, PostbackViewSet
from gateway.common.routers import ApiRouter

router = ApiRouter()
router.register("api/postbacks", PostbackViewSet, basename="postbacks")
router.register("api/user", AdNetworkViewSet, basename="ad-networks")

urlpatterns = router.urls
