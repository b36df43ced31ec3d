"""
Whether the account agrees to a call on another chain than home.

A profile has the same address everywhere, but not the same controllers: anybody can deploy a copy elsewhere, which
begins with the controllers of the first deployment. A signature that another chain accepts therefore says nothing about
the account, which belongs to the profile at home. Either a session of the account agrees, or the home chain permits the
same call to the same controller.
"""

from datetime import datetime

from gateway.chain.config import get_chain, home, on_home
from gateway.chain.errors import NodeUnavailable
from relay.errors import HomePermissionMissing
from relay.queries.calls import controller_of_session
from relay.services.accepting import limits
from relay.services.accepting.calls import Caller, SubmittedCall
from users.errors import ControllerRevoked
from users.services import controllers, sessions


def is_needed() -> bool:
    """Return whether the current chain is not the one on which accounts are proved."""
    return get_chain() is not home()


def require(call: SubmittedCall) -> None:
    """
    Refuse a call on another chain without the account's consent. Reads the home chain.

    A session whose controller may no longer sign at home ends here. While home does not respond, a valid access token
    is enough; such a token is at most `AUTH_ACCESS_SECONDS` old.

    Raises:
        ControllerRevoked: the controller of the session lost SIGN at home; the session has ended.
        HomePermissionMissing: the call has no token, and the home chain does not permit it to its controller.
        NodeUnavailable: the call has no token, and no node of the home chain responded.
    """
    if call.caller.is_signed_in:
        require_session(call.caller, now=call.now)
        return
    with on_home(), limits.share_of_nodes(call.caller.user_id):
        if not controllers.may_relay(
            profile_address=call.caller.profile_address,
            controller=call.identity.controller,
            payload=call.signed.payload,
        ):
            raise HomePermissionMissing(
                f"The home chain does not permit this call to {call.identity.controller}. Permit it there, or sign in "
                "and send the call with a token.",
                controller=call.identity.controller,
                homeChainId=home().id,
            )


def require_session(caller: Caller, *, now: datetime) -> None:
    """
    Refuse a caller with a token whose controller may no longer sign at home.

    Raises:
        ControllerRevoked: the controller lost SIGN at home; the session has ended.
    """
    controller = controller_of_session(user_id=caller.user_id, session_id=caller.session_id, now=now)
    if controller is None or caller.session_id is None:
        return  # The token's issuer vouches for it; there is no controller to read.
    try:
        with on_home(), limits.share_of_nodes(caller.user_id):
            may_sign = controllers.may_sign(profile_address=caller.profile_address, controller=controller)
    except NodeUnavailable:
        return
    if not may_sign:
        sessions.end_revoked(session_id=caller.session_id, now=now)
        raise ControllerRevoked("The controller that signed in may no longer sign for the profile.")
