// What is decided, and the steps that led there. A step may be taken back in any order: what counts for a conflict is the last step about
// it that was not taken back.

/** The number in a decision: `target 56` → `56`; empty where there is none. */
function numberIn(decision) {
  return decision.split(" ")[1] ?? "";
}

function wordIn(decision) {
  return decision.split(" ")[0];
}

class Choices {
  constructor(rows) {
    this.rows = rows;
    this.steps = [];
    this.holders = new Map();
    for (const row of rows) {
      row.log = [];
      row.saved = row.decision;
      row.first = row.decision;
      this.#hold(row);
    }
  }

  /** The conflict that already has the record of the target in a decision, if there is one: only one record can be it. */
  holder(row, decision) {
    const other = this.holders.get(this.#place(row, decision));
    return other === row ? undefined : other;
  }

  /** Decide conflicts in one step. Returns the step, or nothing where it would change nothing, and the conflicts that were left out. */
  decide(name, pairs) {
    const step = { name, rows: [] };
    const refused = [];
    const changes = pairs.filter(([row, decision]) => row.decision !== decision);
    for (const [row] of changes) this.#release(row);
    for (const [row, decision] of changes) {
      if (this.holder(row, decision)) {
        refused.push(row);
      } else {
        row.log.push([step, decision]);
        step.rows.push(row);
        row.decision = decision;
      }
      this.#hold(row);
    }
    if (step.rows.length) this.steps.push(step);
    return { step: step.rows.length ? step : null, refused };
  }

  /** Take a step back. Returns a conflict that keeps it from that, because another one has its record of the target now; else nothing. */
  takeBack(step) {
    const before = step.rows.map((row) => row.decision);
    for (const row of step.rows) this.#release(row);
    for (const row of step.rows) {
      const log = row.log.filter(([other]) => other !== step);
      row.decision = log.length ? log[log.length - 1][1] : row.first;
    }
    const clash = step.rows.find((row) => {
      const other = this.holder(row, row.decision);
      this.#hold(row);
      return other;
    });
    if (clash) {
      const other = this.holder(clash, clash.decision) ?? clash;
      for (const row of step.rows) this.#release(row);
      step.rows.forEach((row, index) => {
        row.decision = before[index];
      });
      for (const row of step.rows) this.#hold(row);
      this.#hold(other);
      return other;
    }
    for (const row of step.rows) row.log = row.log.filter(([other]) => other !== step);
    this.steps = this.steps.filter((other) => other !== step);
    return null;
  }

  /** Conflicts whose decision is not in a saved file yet. */
  get unsaved() {
    return this.rows.reduce((count, row) => count + (row.decision !== row.saved), 0);
  }

  saved() {
    for (const row of this.rows) row.saved = row.decision;
  }

  #place(row, decision) {
    const number = numberIn(decision);
    return number ? `${row.kind.resource} ${number}` : undefined;
  }

  #hold(row) {
    const place = this.#place(row, row.decision);
    if (place && !this.holders.has(place)) this.holders.set(place, row);
  }

  #release(row) {
    const place = this.#place(row, row.decision);
    if (place && this.holders.get(place) === row) this.holders.delete(place);
  }
}

/** The words for conflicts of one kind: `Other values in title`. */
function groupWords(kind, names) {
  if (!names.length) return kind.problem;
  const fields = names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
  return kind.plain ? `Other values in ${fields}` : `${kind.problem.replace(/\.$/, "")}: ${fields}`;
}

/** The conflicts of the page, and their groups: those with one reason and the same fields in conflict; the largest first. */
function readConflicts(about, lines) {
  const groups = new Map();
  const severalResources = new Set(about.kinds.map((kind) => kind.resource)).size > 1;
  const rows = lines.map(([kind, id, title, candidates, asked, others, decision], place) => {
    const row = { kind: about.kinds[kind], id, title, candidates, asked, others, decision, place };
    const names = asked.map(([name]) => name);
    row.group = JSON.stringify([kind, ...names]);
    if (!groups.has(row.group)) {
      const words = groupWords(
        row.kind,
        names.map((name) => about.fields[name]),
      );
      const full = severalResources ? `${row.kind.many}: ${words}` : words;
      groups.set(row.group, { id: row.group, words, full, advice: row.kind.advice, rows: [] });
    }
    groups.get(row.group).rows.push(row);
    row.groupWords = groups.get(row.group).words;
    return row;
  });
  return { rows, groups: new Map([...groups].sort(([, one], [, other]) => other.rows.length - one.rows.length)) };
}

/** Text for a search: lower case, without accents. */
function folded(text) {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}

const SORTS = {
  file: ["As in the file", null],
  title: ["Title", (a, b) => a.title.localeCompare(b.title)],
  number: ["Number of the record", (a, b) => a.id.length - b.id.length || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)],
  decision: ["Decision", (a, b) => a.decision.localeCompare(b.decision)],
};

/** The conflicts that fit a filter: `{ group, field, state, words, sort }`. */
function matching(rows, filter) {
  const words = folded(filter.words).split(/\s+/).filter(Boolean);
  const found = rows.filter(
    (row) =>
      (!filter.group || row.group === filter.group) &&
      (!filter.field || row.asked.some(([name]) => name === filter.field)) &&
      (filter.state === "all" || (filter.state === "decided") === (row.decision !== "")) &&
      words.every((word) => textOf(row).includes(word)),
  );
  const order = SORTS[filter.sort][1];
  return order ? found.sort(order) : found;
}

function textOf(row) {
  if (row.text === undefined) {
    const values = [...row.asked, ...row.others].flatMap((entry) => entry.slice(1)).filter((one) => typeof one === "string");
    row.text = folded([row.id, row.kind.one, row.title, ...row.candidates, ...values].join(" "));
  }
  return row.text;
}
