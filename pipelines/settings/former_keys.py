"""Keys that bookferry.toml had once, and what a person does instead of each: validation_messages.py refuses them with it."""

from __future__ import annotations

from collections.abc import Mapping

FORMER_KEYS: Mapping[str, str] = {
    "drill_at": "Remove it: drills run on the first day of a month, 16 hours after nightly_at; the web interface can stop the schedule.",
    "iceberg.name": "Remove it: the catalogue is called bookferry; libraries that share one have a `namespace` each.",
    "iceberg.warehouse": 'Write it into properties: properties = {warehouse = "..."}.',
    "libraries_at_once": "Write the number into dagster.yaml, as max_concurrent_runs: docs/operating.md, Dagster.",
    "verify_at": "Remove it: snapshots are verified on Sundays, 10 hours after nightly_at; the web interface can stop the schedule.",
    "postgres.wait_seconds": "Remove it: a load waits for readers for 60 seconds.",
    "retention.at": "Remove it: snapshots are removed on Sundays, 13 hours after nightly_at; the web interface can stop the schedule.",
    "notify.failure_env": "Write its value as failure.",
    "notify.success_env": "Write its value as success.",
    "identifiers.addresses": "Remove it: `pattern` describes the whole value, and an address before it makes it invalid.",
    "identifiers.certain": "Remove it: a value is read in the fields of its own type only.",
    "identifiers.check_digit": "Remove it: `pattern` alone says which values are right.",
    "identifiers.labels": "Remove it: `pattern` describes the whole value, and a name before it makes it invalid.",
    "identifiers.separators": "Remove it: a field of such a type has one value.",
    "tenants.files_with_record": "Remove it: each file is attached by a request of its own.",
    "tenants.notify.failure_env": "Write its value as failure.",
    "tenants.notify.success_env": "Write its value as success.",
    "tenants.owners": "Remove it: a library's assets are grouped by its name.",
    "tenants.partial_dates": "It is a decision of each plan: `bookferry migrate plan SOURCE TARGET --first-days`.",
    "tenants.pkce": "Remove it: every sign-in sends a challenge; PKCE is switched off only for clients that send none.",
    "tenants.resume_hours": "Remove it: an interrupted backup is continued within 12 hours.",
    "tenants.scopes": "Remove it: `bookferry login TENANT --for backup` asks for fewer, and so does the consent page.",
    "tenants.send_invalid_identifiers": (
        "It is a decision of each plan: `bookferry migrate plan SOURCE TARGET --invalid-identifiers`."
    ),
    "tenants.walks": "Remove it: a list that moves is read three times at most.",
}
"""Key, without the name of a tenant → one sentence."""
