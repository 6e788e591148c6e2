// The part of the page in which people decide: the overview, the filter, the list, the steps and the file.

const PAGE = 50;
const STEPS_SHOWN = 20;
const OVERVIEW = 12;
const GROUPS_SHOWN = 200;
const STATES = { todo: "To decide", decided: "Decided", all: "All" };

/** The text of a number: `1,234`. */
function grouped(number) {
  return number.toLocaleString("en");
}

function decideInPage() {
  const at = (id) => document.getElementById(id);
  const about = JSON.parse(at("about").textContent);
  const { rows, groups } = readConflicts(about, JSON.parse(at("conflicts").textContent));
  const [root, list, said, search] = ["decide", "list", "said", "search"].map(at);
  const byKey = new Map(rows.map((row) => [`${row.kind.resource} ${row.id}`, row]));
  const waiting = rows.filter((row) => row.kind.waits);
  const largest = [...groups.values()].slice(0, GROUPS_SHOWN);
  const choices = new Choices(rows);
  const state = rows.some((row) => !row.decision) ? "todo" : "all";
  const filter = { group: "", field: "", state, words: "", sort: "file" };
  const act = { decide: decideOne, redraw };
  let [found, page, current] = [[], 0, 0];

  function say(text) {
    said.textContent = text;
  }

  function fillFilter(name, pairs) {
    const select = at(`filter-${name}`);
    select.replaceChildren(...pairs.map(([value, text]) => make("option", { value }, text)));
    select.addEventListener("change", () => {
      filter[name] = select.value;
      refresh();
    });
  }

  function prepare() {
    const fields = [...new Set(rows.flatMap((row) => row.asked.map(([name]) => name)))].slice(0, GROUPS_SHOWN);
    fillFilter("group", [["", "all kinds"], ...largest.map((group) => [group.id, `${group.full} (${grouped(group.rows.length)})`])]);
    fillFilter("field", [["", "all fields"], ...fields.map((name) => [name, about.fields[name]])]);
    fillFilter("state", Object.entries(STATES));
    at("filter-state").value = filter.state;
    fillFilter(
      "sort",
      Object.entries(SORTS).map(([id, [text]]) => [id, text]),
    );
    const used = Object.entries(WORDS).filter(([word]) => about.kinds.some((kind) => kind.offers.includes(word)));
    at("meanings").append(
      ...used.flatMap(([, one]) => [make("dt", {}, make("kbd", {}, one.key), ` ${one.label}`), make("dd", {}, one.means)]),
    );
    at("done").max = waiting.length || 1;
    search.addEventListener("input", () => {
      filter.words = search.value;
      refresh();
    });
    at("back").addEventListener("click", () => takeBack(choices.steps.at(-1)));
    at("save").addEventListener("click", save);
    at("load").addEventListener("change", (event) => {
      if (event.target.files[0]) load(event.target.files[0]);
      event.target.value = "";
    });
  }

  // ---- drawing

  function refresh(keep = false) {
    found = matching(rows, filter);
    page = keep ? Math.min(page, Math.max(0, Math.ceil(found.length / PAGE) - 1)) : 0;
    current = 0;
    draw();
  }

  function draw() {
    list.replaceChildren(...found.slice(page * PAGE, (page + 1) * PAGE).map((row) => card(row, about, act)));
    list.start = page * PAGE + 1;
    const pages = Math.ceil(found.length / PAGE);
    at("pages").replaceChildren(
      ...(pages < 2
        ? []
        : [
            make("button", { type: "button", disabled: page === 0, onclick: () => turn(-1) }, "← Previous page"),
            make("span", {}, `page ${grouped(page + 1)} of ${grouped(pages)}`),
            make("button", { type: "button", disabled: page >= pages - 1, onclick: () => turn(1) }, "Next page →"),
          ]),
    );
    drawCounts();
  }

  function drawCounts() {
    const done = waiting.filter((row) => row.decision).length;
    at("left").textContent = waiting.length ? `${grouped(done)} of ${grouped(waiting.length)} decided` : "Nothing has to be decided";
    at("done").value = done;
    at("kinds").replaceChildren(
      ...largest
        .slice(0, OVERVIEW)
        .map((group) =>
          make(
            "tr",
            { "aria-current": filter.group === group.id ? "true" : false },
            make("th", { scope: "row" }, group.full),
            make("td", { class: "n" }, grouped(group.rows.filter((row) => row.decision).length)),
            make("td", { class: "n" }, grouped(group.rows.length)),
            make("td", {}, make("button", { type: "button", "aria-label": `Show: ${group.full}`, onclick: () => show(group) }, "Show")),
          ),
        ),
    );
    if (groups.size > OVERVIEW) {
      const more = `and ${count(groups.size - OVERVIEW, "smaller kind")}, to be found by kind, by field or by search`;
      at("kinds").append(make("tr", {}, make("td", { colspan: "4" }, more)));
    }
    const open = found.filter((row) => filter.state !== "todo" || !row.decision);
    at("shown").textContent = `${count(open.length, "conflict")} ${open.length === 1 ? "is" : "are"} shown.`;
    at("advice").textContent = filter.group ? groups.get(filter.group).advice : "";
    drawBulk(open);
    at("back").disabled = !choices.steps.length;
    at("no-steps").hidden = choices.steps.length > 0;
    at("steps").start = choices.steps.length;
    at("steps").replaceChildren(
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
    at("save").textContent = `Save ${about.file}${choices.unsaved ? ` (${grouped(choices.unsaved)})` : ""}`;
  }

  function drawBulk(open) {
    const fit = new Map(Object.keys(WORDS).map((word) => [word, []]));
    for (const row of open) {
      for (const word of row.kind.offers) {
        const decision = decisionAmongMany(row, word);
        if (decision !== null) fit.get(word).push([row, decision]);
      }
    }
    at("bulk").replaceChildren(
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
            `${WORDS[word].label}: ${pairs.length === open.length ? "all " : ""}${grouped(pairs.length)}`,
          ),
        ),
    );
  }

  function redraw(row) {
    const old = list.querySelector(`[data-place="${row.place}"]`);
    if (!old) return null;
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const fresh = card(row, about, act);
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
    const where = [filter.group && groups.get(filter.group).full, about.fields[filter.field], filter.words && `“${filter.words}”`]
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
    for (const row of step.rows) Object.assign(row, { chosen: undefined, typing: false, note: "" });
    changed(`Taken back: ${step.name}. ${leftWords()}`);
    const focused = isInList();
    refresh(true);
    if (focused) go(Math.max(0, found.indexOf(step.rows[0])));
  }

  function leftWords() {
    const left = waiting.filter((row) => !row.decision).length;
    return left ? `${grouped(left)} left.` : `Nothing is left: save ${about.file}.`;
  }

  function show(group) {
    Object.assign(filter, { group: group.id, field: "", state: "todo", words: "" });
    if (group.rows.every((row) => row.decision)) filter.state = "all";
    search.value = "";
    for (const name of ["group", "field", "state"]) at(`filter-${name}`).value = filter[name];
    refresh();
    at("shown").scrollIntoView({ block: "start" });
  }

  // ---- what is kept in the browser, and the file

  const storage = `bookferry ${about.plan} ${about.seal}`;

  function changed(text) {
    say(text);
    drawCounts();
    try {
      const kept = rows.filter((row) => row.decision !== row.first).map((row) => [row.place, row.decision, row.decision === row.saved]);
      if (kept.length) localStorage.setItem(storage, JSON.stringify(kept));
      else localStorage.removeItem(storage);
    } catch {
      /* a browser may refuse to store anything for a file; the warning before leaving stays */
    }
  }

  function restore() {
    try {
      const kept = JSON.parse(localStorage.getItem(storage) ?? "[]");
      const fit = kept.filter(([place, decision]) => rows[place] && (decision === "" || WORDS[wordIn(decision)]));
      const { step } = choices.decide(
        `Kept in this browser: ${count(fit.length, "decision")}`,
        fit.map(([place, decision]) => [rows[place], decision]),
      );
      for (const [place, decision, isSaved] of fit) if (isSaved) rows[place].saved = decision;
      if (step) say(`${step.name}, from the last time. ${leftWords()}`);
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
      for (const [row, decision] of pairs) row.saved = decision;
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
    const place = [...list.children].indexOf(event.target.closest(".card"));
    if (place >= 0) current = page * PAGE + place;
  });

  const isInList = () => list.contains(document.activeElement);

  function whyNot(row, word) {
    if (!row.kind.offers.includes(word)) return "This conflict does not take that decision.";
    return isItsOwn(row, chosenNumber(row))
      ? "With that record it would be asked again: choose another decision, or another record."
      : "Choose the record of the target first, with 1 to 9.";
  }

  function onKey(event) {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (key === "j" || (key === "ArrowDown" && isInList())) return go(isInList() ? current + 1 : current);
    if (key === "k" || (key === "ArrowUp" && isInList())) return go(isInList() ? current - 1 : current);
    if (key === "/") return search.focus();
    if (key === "u") return takeBack(choices.steps.at(-1));
    if (key === "n" && (page + 1) * PAGE < found.length) return turn(1);
    if (key === "p" && page > 0) return turn(-1);
    if (!isInList()) return false;
    const row = found[current];
    const word = Object.keys(WORDS).find((one) => WORDS[one].key === key);
    if (/^[1-9]$/.test(key) && row.candidates[key - 1]) {
      row.chosen = row.candidates[key - 1];
      row.typing = false;
      redraw(row);
      return say(`Record of the target: #${row.chosen}`);
    }
    if (key === "0") return decideOne(row, "");
    if (!word) return false;
    const decision = decisionFor(row, word);
    if (decision === null) return say(whyNot(row, word));
    if (decideOne(row, decision)) go(current + 1);
    return true;
  }

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=checkbox]), select, textarea");
    if (typing && event.key === "Escape") {
      typing.blur();
      return go(current);
    }
    if (typing || !at("keys-on").checked || event.ctrlKey || event.altKey || event.metaKey) return undefined;
    if (onKey(event) !== false) event.preventDefault();
    return undefined;
  });

  root.hidden = false;
  at("examples").hidden = true; // its conflicts are all in the list; on paper, it stands for the list
  prepare();
  restore();
  refresh();
}

decideInPage();
