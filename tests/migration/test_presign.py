"""A library that signs uploads at other paths than the documented ones, as its description says: files and covers arrive."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.migration.library_pair import LibraryPair
from tests.service.scripted import Answer, Received, ScriptedServer, forwarded

PATHS = {"assets/presign": "uploads/asset/presign", "publications/cover/presign": "covers/presign"}
"""Documented path → that of this library."""


@pytest.mark.long
@pytest.mark.parametrize("has_file", [True, False])
def test_uploads_are_signed_where_the_mapping_file_or_else_the_description_says(
    pair: LibraryPair, *, has_file: bool
) -> None:
    def answer(request: Received) -> Answer:
        path = request.target.partition("?")[0]
        if path.endswith("/v3/swagger.yaml"):
            description = forwarded(request, pair.sandbox.url).body
            for documented, own_path in PATHS.items():
                assert f"/{documented}:".encode() in description
                description = description.replace(f"/{documented}:".encode(), f"/{own_path}:".encode())
            return Answer(description)
        if any(path.endswith(f"/{documented}") for documented in PATHS):
            return Answer({"error": {"code": "NoRoute", "message": "no such address"}}, 404)
        for documented, own_path in PATHS.items():
            request = replace(request, target=request.target.replace(f"/v3/{own_path}", f"/v3/{documented}"))
        return forwarded(request, pair.sandbox.url)

    with ScriptedServer(answer) as server:
        through = pair.through_proxy(server.url)
        snapshot = through.newest()
        if has_file:
            text = through.map(snapshot).text
            assert 'requests = { presign = "uploads/asset/presign", cover_presign = "covers/presign" }' in text
        plan = through.plan(snapshot)
        applied = through.apply(plan)
        assert (applied.complete, applied.files_uploaded) == (True, plan.facts.files.upload)
        assert plan.facts.files.covers
        assert through.verify(plan).equal
