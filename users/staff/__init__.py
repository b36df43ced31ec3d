"""Pages of the admin that look across the apps: the front page, one person, the search, the books."""
