"""The resources that do not depend on Billing, with their routes."""
