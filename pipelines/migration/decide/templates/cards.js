// One conflict on the page: both sides and what will be there afterwards, with the buttons that decide it.

const WORDS = {
  source: { key: "s", label: "Source is right", means: "The source is right: its values replace those of the target." },
  target: { key: "t", label: "Target is right", means: "The target is right: its values stay." },
  match: { key: "m", label: "It is this record", means: "It is the chosen record of the target, whatever the identifiers say." },
  merge: {
    key: "g",
    label: "Merge them",
    means: "The records of the target under this name are one; the others are merged into it. Nothing can split them again.",
  },
  create: { key: "c", label: "Create it", means: "It is none of the records of the target: create a new one." },
  skip: { key: "x", label: "Leave it out", means: "Do not move it." },
};
const NOTHING = "(nothing)";
const OTHER = "other";
const SIDES_SHOWN = 4;

/** An element with attributes and children; texts are never read as markup. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== ""));
  return element;
}

function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/** The number of the target that a decision about a conflict would name: the one that a person chose, or the only one there is. */
function chosenNumber(row) {
  if (row.chosen !== undefined) return row.chosen;
  const decided = numberIn(row.decision);
  if (decided) return decided;
  return row.candidates.length === 1 ? row.candidates[0] : "";
}

/** Whether `match` with this record would settle nothing: the plan took it already, or the target does not have it any more. */
function isItsOwn(row, number) {
  const isGone = !row.kind.offers.includes("source");
  return row.candidates.length === 1 && row.candidates[0] === number && (row.asked.length > 0 || isGone);
}

/** The decision that a button stands for: `target 56`. Nothing where the conflict does not take it, or where a number is missing. */
function decisionFor(row, word, number = chosenNumber(row)) {
  if (!row.kind.offers.includes(word)) return null;
  if (word === "create" || word === "skip") return word;
  if (word === "merge") return row.chosen && row.chosen === number ? `merge ${number}` : "merge";
  if (!number || (word === "match" && isItsOwn(row, number))) return null;
  return `${word} ${number}`;
}

/** The same for a decision about many conflicts, which names no record where there are several. */
function decisionAmongMany(row, word) {
  return word === "merge" && row.kind.offers.includes(word)
    ? "merge"
    : decisionFor(row, word, row.candidates.length === 1 ? row.candidates[0] : "");
}

/** The words for a decision: `Target is right (#56)`. */
function wordsFor(decision) {
  if (!decision) return "not decided";
  const number = numberIn(decision);
  return `${WORDS[wordIn(decision)].label}${number ? ` (#${number})` : ""}`;
}

/** Two texts that differ, as two lists of nodes in which the different part is marked. */
function marked(one, other) {
  const [a, b] = [Array.from(one), Array.from(other)];
  let start = 0,
    end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  return [a, b].map((all) => {
    const part = all.slice(start, all.length - end).join("");
    return [all.slice(0, start).join(""), part ? make("mark", {}, part) : "", all.slice(all.length - end).join("")];
  });
}

function value(text, nodes) {
  return text === null || text === NOTHING ? make("span", { class: "none" }, NOTHING) : make("bdi", {}, nodes ?? text);
}

/** The texts of a field: of the source, then of each candidate. */
function sidesOf(row, entry, isAsked) {
  if (isAsked) return entry.length > 1 ? [entry[1], entry[2]] : [];
  return entry.slice(1).map((one) => (one === 0 ? entry[1] : one));
}

/** What the target has in a field afterwards, as far as it is known. */
function afterwards(row, sides) {
  const word = wordIn(row.decision),
    [source, ...targets] = sides;
  if (!word) return ["?", "not decided"];
  if (word === "skip") return ["", "not moved"];
  if (word === "create" || word === "source") return [source, ""];
  const target = targets[row.candidates.indexOf(numberIn(row.decision))];
  if (word === "merge" || target === undefined)
    return ["", `as in ${numberIn(row.decision) ? `#${numberIn(row.decision)}` : "the merged record"}`];
  if (word === "target" || source === null || source === NOTHING) return [target, ""];
  if (target === null || target === NOTHING || target === source) return [source, ""];
  return ["", "both have a value: the next plan asks"];
}

/** The table of a conflict: field, source, each candidate, afterwards. */
function comparison(row, about) {
  const shown = row.asked.length
    ? row.candidates.slice(0, 1)
    : row.candidates.slice(0, Math.max(0, ...row.others.map((one) => one.length - 2)));
  const heads = ["Field", `Source: ${about.source}`, ...shown.map((number) => `Target: ${about.target} #${number}`), "Afterwards"];
  const lines = [...row.asked.map((entry) => [entry, true]), ...row.others.map((entry) => [entry, false])].map(([entry, isAsked]) => {
    const sides = sidesOf(row, entry, isAsked);
    const name = make("th", { scope: "row" }, about.fields[entry[0]] ?? entry[0]);
    if (!sides.length) {
      name.append(make("span", { class: "differs" }, "≠ differs"));
      return make(
        "tr",
        {},
        name,
        heads.slice(1).map((head) => make("td", { "data-head": head }, "(not shown)")),
      );
    }
    const [source, ...targets] = sides;
    const differs = targets.some((target) => target !== source);
    if (differs) name.append(make("span", { class: "differs" }, "≠ differs"));
    const both = (target) => target !== source && source && target && source !== NOTHING && target !== NOTHING;
    if (!differs && targets.length) {
      const same = make("span", { class: "equal" }, targets.length > 1 ? "the same in all" : "the same in both");
      return make("tr", {}, name, make("td", { class: "same", colspan: String(heads.length - 1) }, value(source), same));
    }
    const first = targets.find(both);
    const cells = [
      value(source, first && marked(source, first)[0]),
      ...targets.map((target) => value(target, both(target) ? marked(source, target)[1] : undefined)),
    ];
    const [text, words] = afterwards(row, sides);
    cells.push(words ? make("span", { class: "none" }, words) : value(text));
    return make(
      "tr",
      { class: differs ? "differing" : false },
      name,
      cells.map((one, index) => make("td", { "data-head": heads[index + 1] }, one)),
    );
  });
  if (!lines.length) return null;
  return make(
    "table",
    { class: "sides" },
    make(
      "thead",
      {},
      make(
        "tr",
        {},
        heads.map((head) => make("th", { scope: "col" }, head)),
      ),
    ),
    make("tbody", {}, lines),
  );
}

/** The field in which a person chooses the record of the target. */
function chooser(row, onChoice) {
  if (!row.kind.offers.some((word) => word === "match" || word === "merge")) return null;
  if (row.candidates.length === 1) return another(row, onChoice);
  const number = chosenNumber(row),
    isOther = row.typing || (number !== "" && !row.candidates.includes(number));
  const options = row.candidates.map((one) => make("option", { value: one, selected: !isOther && one === number }, `#${one}`));
  options.unshift(make("option", { value: "", selected: !isOther && !number }, "choose …"));
  options.push(make("option", { value: OTHER, selected: isOther }, "another number …"));
  const select = make(
    "select",
    {
      class: "choose",
      onchange: () => {
        row.typing = select.value === OTHER;
        row.chosen = row.typing || !select.value ? undefined : select.value;
        onChoice();
      },
    },
    options,
  );
  const parts = [make("label", {}, "Record of the target ", select)];
  if (isOther) parts.push(numberField(row, onChoice));
  return make("p", { class: "number-of-target" }, parts);
}

/** Where there is one candidate, another one is rare. */
function another(row, onChoice) {
  const isOther = row.chosen !== undefined || (numberIn(row.decision) && numberIn(row.decision) !== row.candidates[0]);
  return make(
    "details",
    { class: "another", open: Boolean(isOther) },
    make("summary", {}, "It is another record of the target"),
    numberField(row, onChoice),
  );
}

function numberField(row, onChoice) {
  const input = make("input", {
    type: "text",
    class: "number",
    value: row.chosen ?? numberIn(row.decision),
    onchange: () => {
      row.chosen = idIn(input.value);
      onChoice();
    },
  });
  return make("label", {}, "Its number ", input);
}

/** The buttons of a conflict. */
function buttons(row, onDecision) {
  const word = wordIn(row.decision);
  const number = chosenNumber(row);
  const all = row.kind.offers
    .filter((one) => one !== "match" || !isItsOwn(row, chosenNumber(row)) || one === word)
    .map((one) => {
      const decision = decisionFor(row, one);
      return make(
        "button",
        {
          type: "button",
          "data-word": one,
          title: WORDS[one].means,
          "aria-pressed": String(one === word),
          disabled: decision === null && one !== word,
          onclick: () => onDecision(decision),
        },
        make("kbd", { "aria-hidden": "true" }, WORDS[one].key),
        ` ${one === "match" && number ? `It is #${number}` : WORDS[one].label}`,
      );
    });
  if (word) all.push(make("button", { type: "button", "data-word": "", class: "quiet", onclick: () => onDecision("") }, "Clear"));
  return make("div", { class: "buttons", role: "group", "aria-label": `Decision about ${row.kind.one} ${row.id}` }, all);
}

/** A text that leads to the page of a publication, in a window of its own: this one may have decisions that are not saved. */
function linked(row, text, page, number) {
  if (!page || row.kind.resource !== "publications") return text;
  return make("a", { href: page.replace("{id}", number), target: "_blank", rel: "noopener" }, text);
}

/** The records of the target, where they have pages. */
function targetLinks(row, about) {
  if (!about.pages.target || row.kind.resource !== "publications") return [];
  const shown = row.candidates.slice(0, SIDES_SHOWN);
  return shown.flatMap((number, index) => [index ? ", " : " · In the target: ", linked(row, `#${number}`, about.pages.target, number)]);
}

/** A conflict as an item of the list. */
function card(row, about, act) {
  const heading = `row-${row.place}`;
  const title = row.kind.hidden ? "(not shown: it may name a person)" : row.title || "(no title)";
  return make(
    "li",
    { class: `card${row.decision ? " decided" : ""}`, tabindex: "-1", "data-place": row.place, "aria-labelledby": heading },
    make(
      "h4",
      { id: heading },
      make("span", { class: "record" }, linked(row, `${row.kind.one} ${row.id}`, about.pages.source, row.id), " "),
      make("bdi", {}, title),
      make("span", { class: "state" }, row.decision ? `✓ ${wordsFor(row.decision)}` : row.kind.waits ? "to decide" : "may be decided"),
    ),
    make("p", { class: "small" }, row.groupWords, targetLinks(row, about)),
    row.note ? make("p", { class: "problem" }, row.note) : null,
    comparison(row, about),
    row.candidates.length > SIDES_SHOWN
      ? make("p", { class: "small" }, `${row.candidates.length} records fit; ${SIDES_SHOWN} are shown.`)
      : null,
    chooser(row, () => act.redraw(row)),
    buttons(row, (decision) => act.decide(row, decision)),
  );
}
