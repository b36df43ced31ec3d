from earnings.models import AdNetwork


def networks() -> dict[str, bool]:
    """Return whether each ad network is enabled, by slug."""
    return dict(AdNetwork.objects.order_by("slug").values_list("slug", "is_enabled"))
