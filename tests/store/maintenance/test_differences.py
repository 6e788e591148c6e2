"""`snapshots diff`: each record is added, removed, changed or equal, and changed records come with their fields."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.errors import ConfigurationError
from pipelines.store.maintenance.differences import ChangedRecord, Differences, ResourceDifferences, compare
from pipelines.store.objects.objects import MANIFEST
from pipelines.store.snapshots.manifest import encode_manifest
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from tests.store.snapshot_factory import STARTED_AT, make_snapshot

SIGNED = "https://storage.example.org/{name}?X-Amz-Date=20261120T020000Z&X-Amz-Signature={signature}"


def record(number: object, **members: object) -> str:
    return json.dumps({"id": number, "title": "A title", **members})


def differences(data: DataFolder, before: list[str], after: list[str], **options: int) -> ResourceDifferences:
    """The differences between two snapshots with these records."""
    a, b = (make_snapshot(data, rows, now=STARTED_AT + timedelta(days=day)) for day, rows in enumerate((before, after)))
    found = compare(data, a, b, **options).resources["publications"]
    back = compare(data, b, a, **options).resources["publications"]
    assert (found.added, found.removed, found.changed) == (back.removed, back.added, back.changed)
    assert found.different == back.different
    return found


def test_every_kind(data: DataFolder) -> None:
    found = differences(
        data,
        [record(1), record(2, year=1984, note=None), record(3), record(10), record(11, a=1, b=2)],
        [
            record(1),
            record(2, year=1985),
            record(4),
            record(10, extra=[]),
            '{"b": 2, "id": 11,"a":1,"title":"A title"}',
        ],
    )
    assert (found.added, found.removed, found.changed, found.unchanged, found.rewritten) == (1, 1, 2, 2, 1)
    assert (found.added_ids, found.removed_ids) == (["4"], ["3"])
    assert found.changed_records == [ChangedRecord("2", ["note", "year"]), ChangedRecord("10", ["extra"])]
    assert found.fields == {"extra": 1, "note": 1, "year": 1}


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
def test_records_without_an_id_are_counted_by_hash(data: DataFolder) -> None:
    found = differences(data, ['{"title": "x"}', '{"title": "x"}', "[1]"], ['{"title": "x"}', '{"title": "y"}', "[1]"])
    assert (found.added, found.removed, found.changed, found.unchanged) == (0, 0, 0, 0)
    assert (found.added_without_id, found.removed_without_id, found.different) == (1, 1, True)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["", "/", "~", "a~1b", 'quo"te', "$.id", "'; DROP TABLE pairs; --", "ключ", "\n", "[0]"]
)
def test_members_of_any_name(data: DataFolder, name: str) -> None:
    assert differences(data, [record(1, **{name: 1})], [record(1, **{name: 2})]).fields == {name: 1}


@pytest.mark.long
def test_payloads_that_duckdb_does_not_read(data: DataFolder) -> None:
    """Half a surrogate pair is JSON to other parsers: the record counts as changed, without a field."""
    found = differences(data, ['{"id": 1, "t": "\\ud800"}'], ['{"id": 1, "t": "\\ud801"}'])
    assert (found.changed, found.changed_records) == (1, [ChangedRecord("1", [])])


member = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from([None, 1, "x", [1], {"k": "v"}]))
library = st.dictionaries(st.integers(1, 12), member, max_size=12)


@pytest.mark.long
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(library, library)
def test_the_result_equals_a_comparison_in_python(
    data: DataFolder, before: dict[int, dict], after: dict[int, dict]
) -> None:  # type: ignore[type-arg]
    """For any two small libraries."""
    found = differences(
        data,
        [json.dumps({"id": number, **rest}) for number, rest in before.items()],
        [json.dumps({"id": number, **dict(reversed(rest.items()))}) for number, rest in after.items()],
        limit=99,
    )
    both = before.keys() & after.keys()
    changed = {
        number: sorted(
            name
            for name in before[number].keys() | after[number].keys()
            if (name in before[number], before[number].get(name)) != (name in after[number], after[number].get(name))
        )
        for number in both
    }
    expected = [ChangedRecord(str(number), names) for number, names in sorted(changed.items()) if names]
    assert found.changed_records == expected
    assert found.added_ids == [str(number) for number in sorted(after.keys() - before.keys())]
    assert found.removed_ids == [str(number) for number in sorted(before.keys() - after.keys())]
    assert found.unchanged == len(both) - len(expected)


class TestSnapshots:
    """Notes and errors about the two snapshots."""

    def found(self, data: DataFolder, a: Snapshot, b: Snapshot, resource: str | None = None) -> Differences:
        """The differences of two snapshots."""
        return compare(data, a, b, resource)

    def test_a_resource_that_one_snapshot_lacks(self, data: DataFolder) -> None:
        """A resource that was not read is compared with nothing: none of its records counts as removed (I4)."""
        a, b = make_snapshot(data), make_snapshot(data, now=STARTED_AT + timedelta(days=1))
        b.manifest.tables, b.manifest.resources = {}, {}
        (b.path / MANIFEST).write_bytes(encode_manifest(b.manifest))
        found = self.found(data, a, b)
        assert (found.equal, found.resources["publications"].only_in) == (False, a.name)
        assert found.resources["publications"].removed == 0

    def test_partial_snapshots_and_two_tenants_are_noted(self, data: DataFolder) -> None:
        """The records are equal all the same."""
        a, b = make_snapshot(data), make_snapshot(data, tenant="other", complete=False)
        found = self.found(data, a, b)
        assert found.equal
        assert [note.split(":")[0] for note in found.notes] == [
            "other/20261120T020000Z is partial",
            "These are snapshots of two tenants",
        ]

    def test_a_resource_that_both_snapshots_lack(self, data: DataFolder) -> None:
        """Exit 2: a typing mistake must not look like "no differences"."""
        a = make_snapshot(data)
        with pytest.raises(ConfigurationError, match="they have publications"):
            self.found(data, a, a, "publikations")
