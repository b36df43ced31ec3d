"""What users earn without paying: check-ins and ad networks."""

from gateway.common import env

# Make the daily seeds, together with a salt in the database. The first makes new ones; all are tried for old ones.
CHECKIN_SEED_SECRETS = env.secrets("CHECKIN_SEED_SECRETS")
CHECKIN_RATE = env.rate("CHECKIN_RATE", "60/minute")
# A limit whatever the badges add up to: staff edit badges, and drop tables are weighed by this number.
CHECKIN_MAX_DAILY_ATTEMPTS = env.integer("CHECKIN_MAX_DAILY_ATTEMPTS", default=5, minimum=1)
# The most a drop table may give a user in a day, as an expected value; staff cannot publish a richer one.
CHECKIN_MAX_DAILY_CREDITS = env.integer("CHECKIN_MAX_DAILY_CREDITS", default=500, minimum=1)
CHECKIN_MAX_DAILY_EXPERIENCE = env.integer("CHECKIN_MAX_DAILY_EXPERIENCE", default=5_000, minimum=1)

ADMOB_KEYS_URL = env.url("ADMOB_KEYS_URL", default="https://www.gstatic.com/admob/reward/verifier-keys.json")
POSTBACK_RATE = env.rate("POSTBACK_RATE", "6000/minute")
# How long postbacks without a credit are kept. Networks repeat for nine days.
POSTBACK_KEPT_DAYS = env.integer("POSTBACK_KEPT_DAYS", default=400, minimum=30)
# Encrypt the networks' secrets in the database. The first key encrypts; all of them decrypt.
AD_NETWORK_SECRET_KEYS = env.secrets("AD_NETWORK_SECRET_KEYS")
