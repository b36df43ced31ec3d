"""The glossary's last column names tables and columns that exist."""

from django.apps import apps

from tests.docs.pages import DOCS, code_spans, rows


def test_every_table_and_column_of_the_glossary_exists() -> None:
    columns = {
        model._meta.db_table: {field.column for field in model._meta.concrete_fields}
        for model in apps.get_models()
    }
    places = [place for *_, cell in rows(DOCS / "glossary.md") for place in code_spans(cell)]
    tables = {place for place in places if "." not in place}
    named = {tuple(place.split(".")) for place in places if "." in place}

    assert len(named) > 30
    assert tables - columns.keys() == set()
    assert {(table, column) for table, column in named if column not in columns.get(table, ())} == set()
