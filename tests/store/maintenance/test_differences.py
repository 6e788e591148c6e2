"""`snapshots diff`: each record is added, removed, changed or equal, and changed records come with their fields."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.errors import ConfigurationError
from pipelines.store.maintenance.differences import ChangedRecord, ResourceDifferences, compare
from pipelines.store.objects.objects import MANIFEST
from pipelines.store.snapshots.manifest import encode_manifest
from pipelines.store.snapshots.snapshots import DataFolder
from tests.store.snapshot_factory import STARTED_AT, make_snapshot

SIGNED = "https://storage.example.org/{name}?X-Amz-Date=20261120T020000Z&X-Amz-Signature={signature}"


def record(number: object, **members: object) -> str:
    return json.dumps({"id": number, "title": "A title", **members})


def differences(data: DataFolder, before: list[str], after: list[str], **options: int) -> ResourceDifferences:
    """The differences between two snapshots with these records."""
    a, b = (make_snapshot(data, rows, now=STARTED_AT + timedelta(days=day)) for day, rows in enumerate((before, after)))
    forward = compare(data, a, b, **options).resources["publications"]
    backward = compare(data, b, a, **options).resources["publications"]
    assert (forward.added, forward.removed, forward.changed) == (backward.removed, backward.added, backward.changed)
    assert forward.different == backward.different
    return forward


@pytest.mark.long
def test_a_new_signature_is_no_change(data: DataFolder) -> None:
    """Addresses of files have a new signature in every listing; another file is a change."""

    def signed(name: str, signature: str) -> str:
        return record(1, cover={"id": "c", "url": SIGNED.format(name=name, signature=signature)}, url="/item?id=1")

    assert not differences(data, [signed("a", "111")], [signed("a", "222")]).different
    assert differences(data, [signed("a", "111")], [signed("b", "111")]).fields == {"cover": 1}
    plain = differences(data, [record(1, url="/item?id=1")], [record(1, url="/item?id=2")])
    assert plain.fields == {"url": 1}


@pytest.mark.long
def test_payloads_that_duckdb_does_not_read_or_that_have_no_id(data: DataFolder) -> None:
    """Half a surrogate pair is JSON to other parsers: the record counts as changed, without a field. One without id counts by its hash."""
    nameless, changed = '{"title": "x"}', '{"title": "y"}'
    comparison = differences(
        data,
        ['{"id": 1, "t": "\\ud800"}', nameless, nameless, "[1]"],
        ['{"id": 1, "t": "\\ud801"}', nameless, changed, "[1]"],
    )
    assert (comparison.changed, comparison.changed_records) == (1, [ChangedRecord("1", [])])
    assert (comparison.added, comparison.removed, comparison.added_without_id, comparison.removed_without_id) == (
        0,
        0,
        1,
        1,
    )


NAMES = ["a", "b", "", "~", "a~1b", 'quo"te', "$.id", "'; DROP TABLE pairs; --", "ключ", "\n", "[0]"]
member = st.dictionaries(st.sampled_from(NAMES), st.sampled_from([None, 1, "x", [1], {"k": "v"}]), max_size=3)
library = st.dictionaries(st.integers(1, 12), member, max_size=12)


@pytest.mark.long
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(library, library)
def test_the_result_equals_a_comparison_in_python(
    data: DataFolder, before: dict[int, dict], after: dict[int, dict]
) -> None:  # type: ignore[type-arg]
    """For any two small libraries, with members of any name, in another order."""
    earlier = {number: json.dumps({"id": number, **rest}) for number, rest in before.items()}
    later = {number: json.dumps({"id": number, **dict(reversed(rest.items()))}) for number, rest in after.items()}
    comparison = differences(data, [*earlier.values()], [*later.values()], limit=99)
    common_numbers = before.keys() & after.keys()
    changed = {
        number: sorted(
            name
            for name in before[number].keys() | after[number].keys()
            if (name in before[number], before[number].get(name)) != (name in after[number], after[number].get(name))
        )
        for number in common_numbers
    }
    expected = [ChangedRecord(str(number), names) for number, names in sorted(changed.items()) if names]
    assert comparison.changed_records == expected
    assert comparison.added_ids == [str(number) for number in sorted(after.keys() - before.keys())]
    assert comparison.removed_ids == [str(number) for number in sorted(before.keys() - after.keys())]
    assert comparison.fields == Counter(name for names in changed.values() for name in names)
    assert comparison.unchanged == len(common_numbers) - len(expected)
    assert comparison.rewritten == sum(
        earlier[number] != later[number] for number in common_numbers if not changed[number]
    )


class TestSnapshots:
    """Notes and errors about the two snapshots."""

    def test_a_resource_that_one_snapshot_lacks(self, data: DataFolder) -> None:
        """A resource that was not read is compared with nothing: none of its records counts as removed (I4)."""
        a, b = make_snapshot(data), make_snapshot(data, now=STARTED_AT + timedelta(days=1))
        b.manifest.tables, b.manifest.resources = {}, {}
        (b.path / MANIFEST).write_bytes(encode_manifest(b.manifest))
        comparison = compare(data, a, b)
        assert (comparison.equal, comparison.resources["publications"].only_in) == (False, a.name)
        assert comparison.resources["publications"].removed == 0

    def test_partial_snapshots_and_two_tenants_are_noted(self, data: DataFolder) -> None:
        """The records are equal all the same."""
        a, b = make_snapshot(data), make_snapshot(data, tenant="other", complete=False)
        comparison = compare(data, a, b)
        assert comparison.equal
        assert [note.split(":")[0] for note in comparison.notes] == [
            "other/20261120T020000Z is partial",
            "These are snapshots of two tenants",
        ]

    def test_a_resource_that_both_snapshots_lack(self, data: DataFolder) -> None:
        """Exit 2: a typing mistake must not look like "no differences"."""
        a = make_snapshot(data)
        with pytest.raises(ConfigurationError, match="they have publications"):
            compare(data, a, a, "publikations")
