#!/usr/bin/env python3
"""Django's command line."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")
    # A migration or a reconciliation may take as long as it takes; a request may not.
    os.environ.setdefault("DATABASE_STATEMENT_TIMEOUT_SECONDS", "0")
    execute_from_command_line(sys.argv)
