"""Plans on disk: their names, and how they are found, sealed and read. Each is a folder in `<data>/plans`."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path

import msgspec

from pipelines.errors import ConfigurationError, StopError, StorageError
from pipelines.file_access import make_folder
from pipelines.migration.model.plan import FACTS, FORMAT, Plan, PlanFacts
from pipelines.migration.model.shared_plans import PLANS, fetch_plans
from pipelines.store.durable import storage_errors, temporary_folder, write_atomically
from pipelines.store.encryption import PersonalKeys
from pipelines.store.snapshots.snapshots import DataFolder


def plans_folder(data: DataFolder) -> Path:
    """The folder of all plans, with those of other machines."""
    fetch_plans(data)
    return data.path / PLANS


def plan_name(source: str, target: str, moment: datetime) -> str:
    """`old-to-new-20261121T203000Z`."""
    return f"{source}-to-{target}-{moment:%Y%m%dT%H%M%SZ}"


def seal_plan(folder: Path, facts: PlanFacts, keys: PersonalKeys | None = None) -> Plan:
    """Write plan.json. It is written last, and a folder without it is no plan."""
    sealed = msgspec.structs.replace(facts, seal=_seal(facts))
    with storage_errors(folder):
        write_atomically(folder / FACTS, msgspec.json.format(msgspec.json.encode(sealed)))
    return Plan(folder, sealed, keys)


def _seal(facts: PlanFacts) -> str:
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(facts, seal=""))).hexdigest()


def all_plans(data: DataFolder) -> list[Plan]:
    """Every finished plan, oldest first, except those that cannot be read."""
    plans = []
    for path in plans_folder(data).glob(f"*/{FACTS}"):
        try:
            plans.append(read_plan(path.parent, data.keys))
        except (StorageError, StopError):
            continue
    return sorted(plans, key=lambda plan: (plan.facts.created_at, plan.name))


def find_plan(data: DataFolder, name: str) -> Plan:
    """The plan that a person names by its name or its folder."""
    folder = plans_folder(data) / name
    for candidate in (folder, Path(name)):
        if re.fullmatch(r"[^\0]+", name) and (candidate / FACTS).is_file():
            return read_plan(candidate, data.keys)
    names = [plan.name for plan in all_plans(data)]
    existing = (
        f"there are {', '.join(names[-5:])}"
        if names
        else "there is none yet: `bookferry migrate plan SOURCE TARGET` makes one"
    )
    raise ConfigurationError(f"There is no plan '{name}' in {plans_folder(data)}; {existing}.")


def read_plan(folder: Path, keys: PersonalKeys | None = None) -> Plan:
    """Read a plan and check its seal. Raises `StopError` if it was altered, `StorageError` if it cannot be read."""
    path = folder / FACTS
    with storage_errors(path):
        content = path.read_bytes()
    try:
        facts = _PLAN_FACTS_DECODER.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StorageError(
            f"{path} is damaged, or of another version of Bookferry ({error}). Make a new plan."
        ) from None
    if facts.format != FORMAT:
        raise StorageError(f"{path} was written by another version ({facts.tool}). Make a new plan.")
    if facts.seal != _seal(facts):
        raise StopError(f"{path} was altered since the plan was made, so its approval is not valid. Make a new plan.")
    return Plan(folder, facts, keys)


@contextmanager
def unfinished_plan(data: DataFolder, name: str) -> Iterator[Path]:
    """Create the folder of a plan; an error removes it again."""
    folder = plans_folder(data) / name
    with storage_errors(folder):
        make_folder(folder.parent)
        folder.mkdir()
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def workdir(plan: Plan) -> AbstractContextManager[Path]:
    """A temporary folder in that of the plan, for a new reading of the target."""
    return temporary_folder(plan.folder / ".now")


_PLAN_FACTS_DECODER = msgspec.json.Decoder(PlanFacts)
