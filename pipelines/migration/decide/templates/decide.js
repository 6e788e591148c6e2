// The part of the page in which people decide: the overview, the filter, the list, the steps and the file.

const PAGE = 50;
const STEPS_SHOWN = 20;
const TABS = { todo: "To decide", decided: "Decided", all: "All" };

/** The words for conflicts of one kind: `Other values in title`. */
function groupWords(kind, names) {
  if (!names.length) return kind.problem;
  const fields = names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
  return kind.plain ? `Other values in ${fields}` : `${kind.problem.replace(/\.$/, "")}: ${fields}`;
}

function decideInPage() {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const about = read("about"),
    root = document.getElementById("decide");
  const words = (name) => about.fields[name] ?? name;
  const groups = new Map();
  const rows = read("conflicts").map(([kind, id, title, candidates, asked, others, decision], place) => {
    const row = { kind: about.kinds[kind], id, title, candidates, asked, others, decision, place };
    const names = asked.map(([name]) => name);
    row.group = JSON.stringify([kind, ...names]);
    row.groupWords = groupWords(row.kind, names.map(words));
    if (!groups.has(row.group)) {
      const prefix = about.kinds.some((one) => one.resource !== row.kind.resource) ? `${row.kind.many}: ` : "";
      groups.set(row.group, {
        id: row.group,
        words: prefix + row.groupWords,
        suggestion: row.kind.suggestion,
        waits: row.kind.waits,
        rows: [],
      });
    }
    groups.get(row.group).rows.push(row);
    return row;
  });
  const byKey = new Map(rows.map((row) => [`${row.kind.resource} ${row.id}`, row]));
  const waiting = rows.filter((row) => row.kind.waits);
  const choices = new Choices(rows);
  const filter = { group: "", field: "", state: "todo", words: "", sort: "file" };
  let found = [],
    page = 0,
    current = 0;

  // ---- the fixed parts

  const said = make("p", { class: "said", role: "status", "aria-live": "polite" });
  const say = (text) => {
    said.textContent = text;
  };
  const leftText = make("strong", { id: "left" });
  const bar = make("progress", { max: waiting.length || 1, "aria-label": "Conflicts that are decided" });
  const overview = make("tbody", {});
  const search = make("input", {
    type: "search",
    id: "search",
    autocomplete: "off",
    oninput: () => {
      filter.words = search.value;
      refresh();
    },
  });
  const options = (pairs) => pairs.map(([id, text]) => make("option", { value: id }, text));
  const chosen = (name, pairs) => {
    const select = make(
      "select",
      {
        id: `filter-${name}`,
        onchange: () => {
          filter[name] = select.value;
          refresh();
        },
      },
      options(pairs),
    );
    return select;
  };
  const largest = [...groups.values()].sort((a, b) => b.rows.length - a.rows.length);
  const names = [...new Set(rows.flatMap((row) => row.asked.map(([name]) => name)))];
  const selects = {
    group: chosen("group", [
      ["", "all kinds"],
      ...largest.map((one) => [one.id, `${one.words} (${one.rows.length.toLocaleString("en")})`]),
    ]),
    field: chosen("field", [["", "all fields"], ...names.map((name) => [name, words(name)])]),
    state: chosen("state", Object.entries(TABS)),
    sort: chosen(
      "sort",
      Object.entries(SORTS).map(([id, [text]]) => [id, text]),
    ),
  };
  const shownText = make("p", { id: "shown", "aria-live": "polite" });
  const adviceText = make("p", { class: "small" });
  const bulk = make("div", { class: "buttons", id: "bulk", role: "group", "aria-label": "Decide all conflicts that are shown" });
  const list = make("ol", { id: "list", class: "cards", "aria-label": "Conflicts" });
  const pager = make("nav", { class: "pages", "aria-label": "Pages of conflicts" });
  const steps = make("ol", { id: "steps", reversed: true });
  const noSteps = make("p", { class: "small" }, "Nothing yet.");
  const keysOn = make("input", { type: "checkbox", id: "keys-on", checked: true });
  const file = make("input", {
    type: "file",
    id: "load",
    accept: ".tsv,.csv,.txt,text/*",
    onchange: () => {
      if (file.files[0]) load(file.files[0]);
      file.value = "";
    },
  });
  const backLast = make(
    "button",
    { type: "button", id: "back", onclick: () => takeBack(choices.steps.at(-1)) },
    make("kbd", { "aria-hidden": "true" }, "u"),
    " Take back",
  );
  const saveButton = make("button", { type: "button", id: "save", class: "main", onclick: save }, `Save ${about.file}`);

  root.append(
    make("h3", {}, "Decide here"),
    make(
      "p",
      {},
      "Choose a kind of conflict, decide one by one or all that are shown at once, and save the file. Nothing leaves this page before that, and every step can be taken back.",
    ),
    make(
      "div",
      { class: "scroll" },
      make(
        "table",
        { class: "kinds" },
        make(
          "thead",
          {},
          make(
            "tr",
            {},
            ["Kind of conflict", "decided", "of", ""].map((text, at) =>
              make(at === 3 ? "td" : "th", { scope: at === 3 ? false : "col", class: at && at < 3 ? "n" : false }, text),
            ),
          ),
        ),
        overview,
      ),
    ),
    make(
      "details",
      { class: "help" },
      make("summary", {}, "What the decisions mean"),
      make(
        "dl",
        {},
        Object.values(WORDS).flatMap((one) => [make("dt", {}, one.label), make("dd", {}, one.means)]),
      ),
    ),
    make(
      "details",
      { class: "help" },
      make("summary", {}, "Keys"),
      make("p", {}, make("label", {}, keysOn, " Keys work")),
      make(
        "dl",
        {},
        [
          ["j, ↓ / k, ↑", "next, previous conflict"],
          ...Object.values(WORDS).map((one) => [one.key, one.label]),
          ["1 – 9", "choose the first, second, … record of the target"],
          ["0", "undecide"],
          ["u", "take the last step back"],
          ["/", "search"],
          ["n / p", "next, previous page"],
        ].flatMap(([key, text]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, text)]),
      ),
    ),
    make(
      "div",
      { class: "filters", role: "search" },
      make("label", {}, "Search ", search),
      make("label", {}, "Kind ", selects.group),
      make("label", {}, "Field ", selects.field),
      make("label", {}, "Show ", selects.state),
      make("label", {}, "Sort by ", selects.sort),
    ),
    shownText,
    adviceText,
    bulk,
    list,
    pager,
    make("details", { class: "help", id: "history" }, make("summary", {}, "Steps so far"), noSteps, steps),
    make(
      "p",
      { class: "load" },
      make("label", { for: "load" }, `Go on with an earlier ${about.file}: choose it, or drop it anywhere on this page `),
      file,
    ),
    make(
      "div",
      { class: "dock", role: "region", "aria-label": "Progress" },
      make("div", { class: "tally" }, leftText, bar),
      said,
      make("div", { class: "buttons" }, backLast, saveButton),
    ),
  );

  // ---- drawing

  function refresh(keep = false) {
    found = matching(rows, filter);
    page = keep ? Math.min(page, Math.max(0, Math.ceil(found.length / PAGE) - 1)) : 0;
    current = 0;
    draw();
  }

  function draw() {
    list.replaceChildren(...found.slice(page * PAGE, (page + 1) * PAGE).map((row) => card(row, about, { decide: decideOne, redraw })));
    list.start = page * PAGE + 1;
    const pages = Math.ceil(found.length / PAGE);
    pager.replaceChildren(
      ...(pages < 2
        ? []
        : [
            make("button", { type: "button", disabled: page === 0, onclick: () => turn(-1) }, "← Previous page"),
            make("span", {}, `page ${(page + 1).toLocaleString("en")} of ${pages.toLocaleString("en")}`),
            make("button", { type: "button", disabled: page >= pages - 1, onclick: () => turn(1) }, "Next page →"),
          ]),
    );
    drawCounts();
  }

  function drawCounts() {
    const done = waiting.filter((row) => row.decision).length;
    leftText.textContent = `${done.toLocaleString("en")} of ${waiting.length.toLocaleString("en")} decided`;
    bar.value = done;
    overview.replaceChildren(
      ...largest.map((group) =>
        make(
          "tr",
          { "aria-current": filter.group === group.id ? "true" : false },
          make("th", { scope: "row" }, group.words),
          make("td", { class: "n" }, group.rows.filter((row) => row.decision).length.toLocaleString("en")),
          make("td", { class: "n" }, group.rows.length.toLocaleString("en")),
          make("td", {}, make("button", { type: "button", "aria-label": `Show: ${group.words}`, onclick: () => show(group) }, "Show")),
        ),
      ),
    );
    const open = found.filter((row) => filter.state !== "todo" || !row.decision);
    shownText.textContent = `${count(open.length, "conflict")} ${open.length === 1 ? "is" : "are"} shown.`;
    adviceText.textContent = filter.group ? groups.get(filter.group).suggestion : "";
    drawBulk(open);
    backLast.disabled = !choices.steps.length;
    noSteps.hidden = choices.steps.length > 0;
    steps.start = choices.steps.length;
    steps.replaceChildren(
      ...choices.steps
        .slice(-STEPS_SHOWN)
        .reverse()
        .map((step) =>
          make(
            "li",
            {},
            `${step.name} `,
            make("button", { type: "button", "aria-label": `Take back: ${step.name}`, onclick: () => takeBack(step) }, "Take back"),
          ),
        ),
    );
    saveButton.textContent = `Save ${about.file}${choices.unsaved ? ` (${choices.unsaved.toLocaleString("en")})` : ""}`;
  }

  function drawBulk(open) {
    const fit = new Map(Object.keys(WORDS).map((word) => [word, []]));
    for (const row of open)
      for (const word of row.kind.offers) {
        const decision = decisionFor({ ...row, chosen: undefined, decision: "" }, word);
        if (decision !== null) fit.get(word).push([row, decision]);
      }
    bulk.replaceChildren(
      ...[...fit]
        .filter(([, pairs]) => pairs.length)
        .map(([word, pairs]) =>
          make(
            "button",
            {
              type: "button",
              "data-word": word,
              title: WORDS[word].means,
              onclick: () => decideAll(word, pairs, open.length),
            },
            `${WORDS[word].label}: ${pairs.length === open.length ? "all " : ""}${pairs.length.toLocaleString("en")}`,
          ),
        ),
    );
  }

  function redraw(row) {
    const old = list.querySelector(`[data-place="${row.place}"]`);
    if (!old) return null;
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const fresh = card(row, about, { decide: decideOne, redraw });
    old.replaceWith(fresh);
    if (focused) {
      const same =
        focused.dataset.word === undefined
          ? fresh.querySelector(focused.tagName.toLowerCase())
          : fresh.querySelector(`button[data-word="${focused.dataset.word}"]`);
      (same && !same.disabled && focused !== old ? same : fresh).focus({ preventScroll: true });
    }
    return fresh;
  }

  // ---- deciding

  function decideOne(row, decision) {
    const holder = choices.holder(row, decision ?? "");
    if (decision === null || holder) {
      row.note = holder
        ? `${holder.kind.one} ${holder.id} already is #${numberIn(decision)} of the target, and only one record can be it. Leave one of them out, or create it.`
        : "";
      if (holder) say(row.note);
      redraw(row);
      return false;
    }
    row.note = "";
    const name = `${row.kind.one} ${row.id}: ${wordsFor(decision)}`;
    if (choices.decide(name, [[row, decision]]).step) changed(`${name}. ${leftWords()}`);
    redraw(row);
    return true;
  }

  function decideAll(word, pairs, of) {
    const where = [filter.group && groups.get(filter.group).words, filter.field && words(filter.field), filter.words && `“${filter.words}”`]
      .filter(Boolean)
      .join(", ");
    const name = `${WORDS[word].label}: ${count(pairs.length, "conflict")}${where ? ` (${where})` : ""}`;
    const { step, refused } = choices.decide(name, pairs);
    if (step) step.name = name.replace(count(pairs.length, "conflict"), count(step.rows.length, "conflict"));
    const left = of - pairs.length;
    const notes = [
      left && `${count(left, "conflict")} cannot be decided so`,
      refused.length && `${count(refused.length, "conflict")} left out, because another record already is that record of the target`,
    ];
    changed([step?.name ?? "Nothing changed", ...notes.filter(Boolean), leftWords()].join(". "));
    refresh();
  }

  function takeBack(step) {
    if (!step) return;
    const clash = choices.takeBack(step);
    if (clash) {
      say(`It cannot be taken back: ${clash.kind.one} ${clash.id} is that record of the target now. Take that back first.`);
      return;
    }
    for (const row of step.rows) {
      row.chosen = undefined;
      row.typing = false;
      row.note = "";
    }
    changed(`Taken back: ${step.name}. ${leftWords()}`);
    refresh(true);
  }

  function leftWords() {
    const left = waiting.filter((row) => !row.decision).length;
    return left ? `${left.toLocaleString("en")} left.` : `Nothing is left: save ${about.file}.`;
  }

  function show(group) {
    Object.assign(filter, { group: group.id, field: "", state: "todo", words: "" });
    if (group.rows.every((row) => row.decision)) filter.state = "all";
    search.value = "";
    for (const [name, select] of Object.entries(selects)) select.value = filter[name];
    refresh();
    shownText.scrollIntoView({ block: "start" });
  }

  // ---- what is kept in the browser, and the file

  const place = `bookferry ${about.plan} ${about.seal}`;

  function changed(text) {
    say(text);
    drawCounts();
    try {
      const kept = rows.filter((row) => row.decision !== row.saved).map((row) => [row.place, row.decision]);
      if (kept.length) localStorage.setItem(place, JSON.stringify(kept));
      else localStorage.removeItem(place);
    } catch {
      /* a browser may refuse to store anything for a file; the warning before leaving stays */
    }
  }

  function restore() {
    try {
      const kept = JSON.parse(localStorage.getItem(place) ?? "[]");
      const pairs = kept
        .filter(([at, decision]) => rows[at] && (decision === "" || WORDS[wordIn(decision)]))
        .map(([at, decision]) => [rows[at], decision]);
      const { step } = choices.decide(`Kept in this browser: ${count(pairs.length, "decision")}`, pairs);
      if (step) say(`${step.name}, from the last time. Save ${about.file}, or take them back.`);
    } catch {
      /* the same */
    }
  }

  function save() {
    const content = new Blob([tableText(about.columns, rows)], { type: "text/tab-separated-values" });
    const link = make("a", { href: URL.createObjectURL(content), download: about.file });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    choices.saved();
    changed(`Saved ${about.file}. Send it to the person who runs the migration: bookferry migrate decide ${about.plan} ${about.file}`);
  }

  async function load(chosenFile) {
    try {
      const text = decoded(new Uint8Array(await chosenFile.arrayBuffer()));
      const mergeable = new Set(about.kinds.filter((kind) => kind.offers.includes("merge")).map((kind) => kind.resource));
      const pairs = decisionsIn(text, byKey, mergeable);
      const { step, refused } = choices.decide(`Read from ${chosenFile.name}: ${count(pairs.length, "decision")}`, pairs);
      if (refused.length) {
        if (step) choices.takeBack(step);
        throw new Error(`${refused[0].kind.one} ${refused[0].id} and another record are decided to be the same record of the target`);
      }
      if (choices.rows.every((row) => row.decision === "" || pairs.some(([one]) => one === row))) choices.saved();
      changed(`${count(pairs.length, "decision")} read from ${chosenFile.name}. ${leftWords()}`);
      refresh();
    } catch (error) {
      say(`${chosenFile.name} cannot be used, and nothing was taken from it: ${error.message}.`);
    }
  }

  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files[0]) load(event.dataTransfer.files[0]);
  });
  window.addEventListener("beforeunload", (event) => {
    if (choices.unsaved) event.preventDefault();
  });

  // ---- keys

  function go(to) {
    const first = page * PAGE;
    if (to < 0 || to >= found.length) return;
    if (to < first || to >= first + PAGE) {
      page = Math.floor(to / PAGE);
      draw();
    }
    current = to;
    list.children[to - page * PAGE].focus();
  }

  function turn(by) {
    page += by;
    draw();
    go(page * PAGE);
  }

  list.addEventListener("focusin", (event) => {
    const at = [...list.children].indexOf(event.target.closest(".card"));
    if (at >= 0) current = page * PAGE + at;
  });

  const isInList = () => list.contains(document.activeElement);

  function onKey(event) {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (key === "j" || (key === "ArrowDown" && isInList())) return go(isInList() ? current + 1 : current);
    if (key === "k" || (key === "ArrowUp" && isInList())) return go(isInList() ? current - 1 : current);
    if (key === "/") return search.focus();
    if (key === "u") return takeBack(choices.steps.at(-1));
    if (key === "n" && (page + 1) * PAGE < found.length) return turn(1);
    if (key === "p" && page > 0) return turn(-1);
    if (!isInList()) return false;
    const row = found[current],
      word = Object.keys(WORDS).find((one) => WORDS[one].key === key);
    if (/^[1-9]$/.test(key) && row.candidates[key - 1]) {
      row.chosen = row.candidates[key - 1];
      row.typing = false;
      redraw(row);
      return say(`Record of the target: #${row.chosen}`);
    }
    if (key === "0") return decideOne(row, "");
    if (!word) return false;
    const decision = decisionFor(row, word);
    if (decision === null)
      return say(
        row.kind.offers.includes(word) ? "Choose the record of the target first: 1 – 9." : "This conflict does not take that decision.",
      );
    if (decideOne(row, decision)) go(current + 1);
    return true;
  }

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=checkbox]), select, textarea");
    if (typing && event.key === "Escape") {
      typing.blur();
      return go(current);
    }
    if (typing || !keysOn.checked || event.ctrlKey || event.altKey || event.metaKey) return undefined;
    if (onKey(event) !== false) event.preventDefault();
    return undefined;
  });

  root.hidden = false;
  restore();
  refresh();
}

decideInPage();
