"""Routes of the relay."""

from gateway.common.routers import ApiRouter
from relay.api.lsp15 import Lsp15ViewSet
from relay.api.views import RelayViewSet

router = ApiRouter()
router.register("api/relay", RelayViewSet, basename="relay")
router.register("api/lsp15", Lsp15ViewSet, basename="lsp15")

urlpatterns = router.urls
