"""The figures, and under which part of the project files count."""

from lab.inventory import count, group_of

_PAGE = b"| setting | meaning |\n| `ONE_NAME`, `OTHER_NAME` | two |\n"
_MODULE = b'"""Nobody says so."""\n\n\ndef long() -> None:\n' + b"    pass\n" * 60
_SQL = b"-- What is due is answered.\nSELECT 'says nobody';\n"
_NAMED = b"def test_nobody_is_told() -> None:\n    pass\n"
_TEXT = b'"""One."""\n\nDETAIL = "An answer that says much"\nKEY = "nobody"\n'
_TEST = b"".join(b'monkeypatch.setattr(module, "%s", 1)\n' % name for name in (b"_private", b"public"))


def test_a_part_is_counted_under_one_name_wherever_it_was_kept_before() -> None:
    """A commit from before a move is comparable with one from after it."""
    assert group_of("devstack/bench/run.py") == group_of("lab/bench/run.py") == "lab"
    assert group_of("tools/lab/bench/run.py") == "lab"
    assert group_of("devstack/stripe/api.py") == group_of("stripe_double/api.py") == "stripe_double"
    assert group_of("tools/stripe_double/tests/test_time.py") == "stripe_double"
    assert group_of("tests/devstack/stripe/openapi.py") == "tests"
    assert group_of("requirements/base.txt") == "generated"
    assert group_of("requirements/base.in") == "other"


def test_lines_functions_settings_targets_patches_and_phrases_are_counted() -> None:
    """Each figure comes from the files alone."""
    rows = count(
        {
            "docs/configuration.md": _PAGE,
            "Makefile": b"run: ready ## Start\nclean:\n",
            "relay/one.py": _MODULE,
            "relay/other.py": b"A = 1\nB = 2\n",
            "tests/test_one.py": _TEST,
        }
    )
    assert rows["tracked lines"] == 2 + 2 + 64 + 2 + 2
    assert rows["product: functions over 60 lines"] == 1
    assert rows["product: lines of a file, max"] == 64
    assert (rows["settings"], rows["make targets"]) == (2, 1)
    assert rows["tests: patches of private names"] == 1
    assert rows["phrases: nobody, somebody"] == rows["phrases: say, says"] == 1
    assert rows["phrases: all"] == 2


def test_names_of_tests_sql_comments_titles_and_texts_are_counted_apart() -> None:
    """Phrases there leave the total of pages and docstrings unchanged."""
    rows = count(
        {
            "docs/configuration.md": _PAGE,
            "docs/adr/0001-one.md": b"# 0001 Nobody answers\n\nHow it is told.\n",
            "Makefile": b"",
            "relay/one.py": _TEXT,
            "relay/other.py": b"A = 1\nB = 2\n",
            "relay/functions.sql": _SQL,
            "tests/test_one.py": _NAMED,
        }
    )
    assert (rows["phrases in names of tests"], rows["phrases in SQL comments"]) == (2, 1)
    assert (rows["phrases in titles of decisions"], rows["phrases in texts of the product"]) == (1, 1)
    assert (rows["answer in SQL comments"], rows["answer in texts of the product"]) == (1, 1)
    assert (rows["answer in Markdown"], rows["answer in names of tests"], rows["phrases: all"]) == (1, 0, 2)
