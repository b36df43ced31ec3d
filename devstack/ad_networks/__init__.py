"""Ad networks as the service meets them: postbacks that are signed as each network signs."""
