"""Routes of the dashboard and the histories."""

from gateway.common.routers import ApiRouter
from portal.api.views import DashboardViewSet, EarningViewSet, TransactionViewSet

router = ApiRouter()
router.register("api/user", DashboardViewSet, basename="dashboard")
router.register("api/user/earnings", EarningViewSet, basename="earnings")
router.register("api/user/transactions", TransactionViewSet, basename="transactions")
urlpatterns = router.urls
