"""Migrates into a service that carries requests out late, while the migrating processes are killed: `python -m tests.migration.late_chaos`.

Three requests in ten that write are late by up to 45 s: a third of them is held, of another third the connection is reset, and the others
are answered with 502 or 504 before they take effect. `--beyond` makes them later than the read timeout, and kills nobody;
then verify and the next plan name each twin.
`--read-seconds` scales all times: 60 are the real ones.
"""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.migration.apply.test_chaos import contents_of
from tests.migration.chaos import Applies
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources import full_library
from tests.migration.other_resources.test_chaos import contents_of as contents_of_all
from tests.migration.other_resources.test_chaos import without_three_users
from tests.sandbox.process import SandboxProcess

WITHIN, BEYOND = (0.0, 45 / 60), (1.3, 2.2)
"""Shortest and longest delay of an effect, as shares of the read timeout."""

SHARE = 0.3
MOST_RUNS = 12
UNDELETED = ("authorities", "tasks")


@dataclass
class Figures:
    """What happened to one library. `unnamed`: publications that are superfluous, and that neither verify nor the next plan names."""

    kills: int = 0
    lost: int = 0
    twice: int = 0
    unnamed: int = 0
    twins: int = 0
    seconds: float = 0.0


class Library:
    """Empty targets in one sandbox, all for one snapshot."""

    def __init__(self, folder: Path, *, everything: bool, seeds: int, records: int) -> None:
        self._folder = folder
        self.everything = everything
        content = f"real:{full_library.RECORDS}" if everything else f"real:{records}"
        kind = "real:1" if everything else "empty"
        targets = [f"--tenant=target{number}={kind}" for number in range(seeds + 1)]
        self.sandbox = SandboxProcess(f"--tenant=library={content}", *targets, "--requests-per-minute", "0")

    def begin(self) -> Counter[str]:
        """Back the source up, and migrate it once without faults; returns the contents that every target must have."""
        os.environ |= {"TEST_USER": self.sandbox.user, "TEST_PASSWORD": self.sandbox.password}
        pair = self.pair(0)
        if self.everything:
            full_library.back_up(pair, "run")
        else:
            pair.back_up()
        self._snapshot = pair.config.parent / "library-data"
        pair.apply(self.plan(pair))
        return self.contents(pair)

    def pair(self, number: int) -> LibraryPair:
        """The snapshot, and another target."""
        folder = self._folder / f"target{number}"
        folder.mkdir()
        if number:
            for name in ("snapshots", "files"):
                if (self._snapshot / name).exists():
                    (folder / "library-data").mkdir(exist_ok=True)
                    (folder / "library-data" / name).symlink_to(self._snapshot / name)
        if not self.everything:
            return LibraryPair.at(folder, self.sandbox, "library", f"target{number}")
        return without_three_users(full_library.make_pair(folder, self.sandbox, f"target{number}"))

    def plan(self, pair: LibraryPair) -> Any:
        """A plan of everything."""
        resources = full_library.ALL_RESOURCES if self.everything else ()
        return pair.plan(pair.newest(), resources=resources)

    def contents(self, pair: LibraryPair) -> Counter[str]:
        """The records of a target without their ids."""
        return contents_of_all(pair) if self.everything else contents_of(pair.publications())


def be_late(pair: LibraryPair, seed: int, delays: tuple[float, float], read_seconds: float) -> None:
    """Make three writing requests in ten late."""
    least, most = (share * read_seconds for share in delays)
    order = {"share": SHARE / 3, "seed": seed, "times": 10**6, "least_seconds": least, "seconds": most}
    for method in ("POST", "PATCH", "DELETE"):
        path = "^/api/"
        pair.sandbox.fault("late", pair.target, method=method, path=path, **order)
        pair.sandbox.fault("late", pair.target, method=method, path=path, answer="reset", **order)
        status = 502 if seed % 2 else 504
        pair.sandbox.fault("late", pair.target, method=method, path=path, answer="status", status=status, **order)


def run_killed(applies: Applies, pair: LibraryPair, plan: str, what: str, dice: random.Random) -> int:
    """Apply or undo a plan, killed up to three times, until that is done. Returns the number of kills."""
    kills, wanted, runs = 0, dice.randint(1, 3), 0
    while True:
        runs += 1
        assert runs <= MOST_RUNS, applies.close()
        kill_after = dice.uniform(0.3, 1.5 + 0.5 * applies.read_seconds) if kills < wanted else None
        status = applies.run(pair.config, plan, kill_after, what=what)
        kills += status < 0
        if status == 0:
            return kills


def superfluous(pair: LibraryPair) -> set[int]:
    """Publications of the target that the journal does not know."""
    with closing(sqlite3.connect(pair.config.parent / "library-data" / "state.db")) as db:
        known = {int(text) for (text,) in db.execute("SELECT target_id FROM migration_writes WHERE state = 'done'")}
    return {record["id"] for record in pair.publications()} - known


def one(library: Library, number: int, expected: Counter[str], options: argparse.Namespace) -> Figures:
    """Migrate into one target."""
    dice, began, figures = random.Random(number), time.monotonic(), Figures()
    pair = library.pair(number)
    before = library.contents(pair)
    plan = library.plan(pair)
    be_late(pair, number, BEYOND if options.beyond else WITHIN, options.read_seconds)
    applies = Applies(options.read_seconds)

    if options.beyond:  # another run would ask for another plan, once such an effect has come
        assert applies.run(pair.config, plan.name) == 0, applies.close()
    else:
        figures.kills = run_killed(applies, pair, plan.name, "apply", dice)
    pair.sandbox.reset("faults", tenant=pair.target)
    time.sleep((BEYOND[1] if options.beyond else 1) * options.read_seconds)  # the last effect has come
    have = library.contents(pair)
    figures.lost, figures.twice = (expected - have).total(), (have - expected).total()
    if not library.everything:
        with pair.migration() as migration:
            found = {one.target_id for one in migration.verify(plan).findings if one.code == "duplicated"}
        ids = {number for twin in library.plan(pair).facts.twins or () for number in twin.twins}
        figures.twins, figures.unnamed = len(ids), len(superfluous(pair) - (ids & found))
    if options.undo:
        be_late(pair, number, WITHIN, options.read_seconds)
        figures.kills += run_killed(applies, pair, plan.name, "undo", dice)
        pair.sandbox.reset("faults", tenant=pair.target)
        time.sleep(options.read_seconds)
        left = library.contents(pair)
        figures.lost += (before - left).total()
        figures.twice += sum(count for record, count in (left - before).items() if record.split()[0] not in UNDELETED)
    applies.close()
    figures.seconds = time.monotonic() - began
    return figures


def main(arguments: list[str] | None = None) -> list[Figures]:
    """Migrate into one target for each seed; prints a line for each, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--read-seconds", type=float, default=2.0, help="the read timeout; 60 is the real one")
    parser.add_argument("--records", type=int, default=80)
    parser.add_argument("--beyond", action="store_true", help="effects that come later than the read timeout")
    parser.add_argument("--everything", action="store_true", help="every resource, instead of publications with files")
    parser.add_argument(
        "--undo", action="store_true", help="undo the migration afterwards, with kills and late effects"
    )
    options = parser.parse_args(arguments)
    all_figures = []
    with tempfile.TemporaryDirectory() as folder:
        library = Library(
            Path(folder), everything=options.everything, seeds=options.seeds + options.first, records=options.records
        )
        with library.sandbox:
            expected = library.begin()
            for number in range(options.first, options.first + options.seeds):
                all_figures.append(one(library, number, expected, options))
                print(f"seed {number}: {all_figures[-1]}", flush=True)  # noqa: T201  the harness is a command
    total = {
        name: sum(getattr(figures, name) for figures in all_figures)
        for name in ("kills", "lost", "twice", "twins", "unnamed")
    }
    print(f"{options.seeds} seeds: {total}", flush=True)  # noqa: T201
    return all_figures


if __name__ == "__main__":
    main()
