"""The routes of sponsors' endpoints."""

from gateway.web.routers import ApiRouter
from sponsors.api.access import SPONSOR_PATH
from sponsors.api.alarm import AlarmViewSet
from sponsors.api.email_members import InvitationViewSet, MemberSignInViewSet
from sponsors.api.exports import ExportViewSet
from sponsors.api.figures import FiguresViewSet
from sponsors.api.keys import KeyViewSet
from sponsors.api.members import MembershipViewSet, MemberViewSet
from sponsors.api.simulator import SimulatorViewSet
from sponsors.api.terms import SignerViewSet, TermsViewSet

router = ApiRouter()
router.register("api", MembershipViewSet, basename="sponsors")
router.register("api/members", MemberSignInViewSet, basename="sponsor-sign-in")
router.register(SPONSOR_PATH, InvitationViewSet, basename="sponsor-invitations")
router.register(SPONSOR_PATH, MemberViewSet, basename="sponsor-members")
router.register(SPONSOR_PATH, FiguresViewSet, basename="sponsor-figures")
router.register(SPONSOR_PATH, TermsViewSet, basename="sponsor-terms")
router.register(SPONSOR_PATH, SignerViewSet, basename="sponsor-signers")
router.register(SPONSOR_PATH, SimulatorViewSet, basename="sponsor-simulator")
router.register(SPONSOR_PATH, ExportViewSet, basename="sponsor-export")
router.register(SPONSOR_PATH, KeyViewSet, basename="sponsor-keys")
router.register(SPONSOR_PATH, AlarmViewSet, basename="sponsor-alarm")
urlpatterns = router.urls
