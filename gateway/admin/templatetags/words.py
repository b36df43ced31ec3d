"""Template filters that format values as lists do."""

from django import template

from gateway.admin import columns

register = template.Library()
register.filter("words", columns.word_of)
register.filter("pill", columns.badge)
register.filter("as_percent", columns.percent)
register.filter("money", columns.money)
register.filter("changes_of", lambda pairs, opts: columns.lines(opts.model, pairs))
