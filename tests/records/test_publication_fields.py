"""A new field of a publication is one entry in `publication_fields.py` of records/tables; each test names the place that lacks a field."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

WITH_NEW_FIELDS = """
import hashlib, json
from pathlib import Path
import pipelines.records.tables.publication_fields as fields

source = Path(fields.__file__).read_text("utf-8")
mark = 'PublicationField("abstract"'
new = '''PublicationField("language", FieldType.TEXT, {"language": "Language."}),
    PublicationField("received_on", FieldType.DATE, {"received_on": "Day.", "received_on_raw": "Text.",
        "received_year": "Year.", "received_precision": "day, month or year."}),
    PublicationField("publisher", FieldType.REFERENCE, {"publisher_id": "Number.", "publisher_name": "Name."}),
    '''
assert source.count(mark) == 1
exec(compile(source.replace(mark, new + mark), fields.__file__, "exec"), vars(fields))

from pipelines.records.forms import form_of
from pipelines.records.stager import Stager
from pipelines.records.matching import comparable

record = {"id": 1, "title": "T", "language": "de", "received_on": "2020-02-29", "publisher": {"id": 7, "name": "P"}}
payload = json.dumps(record, separators=(",", ":")).encode()
staged = Stager("publications")([payload], [hashlib.sha256(payload).hexdigest()])
form = form_of(record)
print(json.dumps({"staged": staged.tables["publications"].to_pylist()[0], "sent": form.fields, "unsent": form.unsent,
                  "form": comparable(form.fields)}, default=str))
"""
"""Adds a field of each simple type to the description, then stages, sends and compares a record that has them."""


@pytest.mark.long
def test_a_field_is_added_in_one_place() -> None:
    """With an entry in the description, a field has its columns, is sent, and is compared."""
    done = subprocess.run([sys.executable, "-c", WITH_NEW_FIELDS], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    columns = {
        "language": "de",
        "received_on": "2020-02-29",
        "received_on_raw": "2020-02-29",
        "received_year": 2020,
        "received_precision": "day",
        "publisher_id": 7,
        "publisher_name": "P",
        "residue": None,
    }
    assert columns.items() <= found["staged"].items()
    assert {"language": "de", "received_on": "2020-02-29", "publisher": {"id": 7}}.items() <= found["sent"].items()
    assert found["unsent"] == {}
    assert {"language", "received_on", "publisher"} <= found["form"].keys()
