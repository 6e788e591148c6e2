// conflicts.tsv: written byte for byte as Bookferry writes it, and read as Bookferry reads it after a spreadsheet saved it.

const LONGEST_CELL = 32000;
const HEADING_WITHIN = 20;
const MISTAKES_LISTED = 10;
const TEXT_ID = "[^\\s#']*[^\\s#'\\d.,]\\S*?";
const ID = new RegExp(`^[\\s#']*(?:(\\d{1,19})(?:\\.0)?|(${TEXT_ID}))\\s*$`);
const DECISION = new RegExp(`^(create|skip|match|source|target|merge)(?:[\\s:=#]*(\\d+)|[\\s:=#]+(${TEXT_ID}))?[\\s.]*$`, "i");

/** One cell as text on one line: no spreadsheet takes it for a formula. A number alone stays as it is, with its sign. */
function cell(text) {
  const alone = /^[+-]?[0-9]+(?:[.,][0-9]+)?$/.test(text);
  const line = text
    .replace(/[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+/g, " ")
    .replace(/[\x00-\x1f\x7f]/g, (one) => String.fromCharCode(one === "\x7f" ? 0x2421 : 0x2400 + one.charCodeAt(0)))
    .replace(/[\x80-\x9f]/g, (one) => `\\x${one.charCodeAt(0).toString(16)}`)
    .replace(/[\u202a-\u202e\u2066-\u2069]/g, (one) => `\\u${one.charCodeAt(0).toString(16)}`);
  let safe = alone ? text : line.replace(/(^|;)(?=\s*[=+\-@＝＋－＠])/g, "$1'");
  const characters = safe.length > LONGEST_CELL ? Array.from(safe) : [];
  if (characters.length > LONGEST_CELL) {
    const all = Array.from(text).length.toLocaleString("en");
    safe = `${characters.slice(0, LONGEST_CELL).join("")}… (${all} characters)`;
  }
  return safe.includes('"') ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The cells of a conflict, without the decision. */
function cellsOf(row) {
  const kind = row.kind;
  const fields = row.asked.map((entry) =>
    entry.length === 1 ? entry[0] : `${entry[0]}: «${entry[3] ?? entry[1]}» | «${entry[4] ?? entry[2]}»`,
  );
  return [
    kind.resource,
    row.id,
    cell(row.title),
    cell([kind.problem, kind.suggestion].filter(Boolean).join(" ")),
    cell(row.candidates.map((number) => `#${number}`).join(" or ")),
    cell(fields.join(kind.hidden ? ", " : " · ")),
  ];
}

/** The whole table, with the decisions. */
function tableText(columns, rows) {
  const lines = rows.map((row) => [...cellsOf(row), cell(row.decision)].join("\t"));
  return `\ufeff${[columns.join("\t"), ...lines].join("\n")}\n`;
}

/** The text of a file in an encoding that spreadsheets save: UTF-8, UTF-16 or Windows-1252. */
function decoded(bytes) {
  const [first, second] = bytes;
  const named =
    first === 0xff && second === 0xfe
      ? "utf-16le"
      : first === 0xfe && second === 0xff
        ? "utf-16be"
        : first && second === 0
          ? "utf-16le"
          : first === 0
            ? "utf-16be"
            : "";
  if (named) return new TextDecoder(named).decode(bytes);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

/** The lines of a table as lists of cells. Throws an Error where a quotation mark is not closed. */
function parseTable(text, separator) {
  const lines = [];
  let cells = [],
    start = 0,
    at = 0;
  const end = () => {
    lines.push(cells);
    cells = [];
  };
  while (at <= text.length) {
    if (text[at] === '"' && at === start) {
      let value = "",
        from = at + 1,
        close;
      for (;;) {
        close = text.indexOf('"', from);
        if (close < 0) throw new Error("a quotation mark is not closed");
        value += text.slice(from, close);
        if (text[close + 1] !== '"') break;
        value += '"';
        from = close + 2;
      }
      at = close + 1;
      if (at < text.length && text[at] !== separator && text[at] !== "\n" && text[at] !== "\r") {
        throw new Error("a cell goes on after its quotation marks");
      }
      cells.push(value);
    } else {
      while (at < text.length && text[at] !== separator && text[at] !== "\n" && text[at] !== "\r") at += 1;
      cells.push(text.slice(start, at));
    }
    if (at >= text.length) {
      if (cells.length > 1 || cells[0]) end();
      return lines;
    }
    if (text[at] !== separator) {
      end();
      if (text[at] === "\r" && text[at + 1] === "\n") at += 1;
    }
    at += 1;
    start = at;
  }
  return lines;
}

/** A cell with single blanks and in one Unicode form. */
function plain(text) {
  return (text ?? "").normalize("NFKC").trim().split(/\s+/).join(" ");
}

/** The id in a cell; nothing unless there is exactly one. */
function idIn(text) {
  const found = ID.exec(plain(text));
  return found?.[1] ? `${BigInt(found[1])}` : found?.[2];
}

function headingOf(cells) {
  return cells.map((text) => (text.toLowerCase().match(/[\p{L}\p{N}_]+/u) ?? [""])[0]);
}

/** The lines below the heading, each with its number and its cells by column. Throws an Error for a text that is no such table. */
function linesOf(text) {
  const body = text.replace(/^\ufeff/, "");
  for (const separator of "\t;,|") {
    let lines;
    try {
      lines = parseTable(body, separator);
    } catch (error) {
      if (separator === "\t" && /^[^\n]*resource\t/.test(body)) throw error;
      continue;
    }
    const place = lines.slice(0, HEADING_WITHIN).findIndex((cells) => {
      const names = headingOf(cells);
      return ["resource", "source_id", "decision"].every((name) => names.includes(name));
    });
    if (place < 0) continue;
    const names = headingOf(lines[place]);
    return lines.slice(place + 1).map((cells, index) => ({
      line: place + 2 + index,
      cells: Object.fromEntries(names.map((name, column) => [name, cells[column] ?? ""])),
    }));
  }
  throw new Error("it has no line with the headings resource, source_id and decision");
}

/** The decision in a line of a file, in one spelling, or an Error that says what is wrong with it. */
function decisionIn(cells, resource, mergeable) {
  const text = plain(cells.decision);
  const found = DECISION.exec(text);
  if (!found) throw new Error(`“${cells.decision.slice(0, 60)}” is no decision`);
  const word = found[1].toLowerCase(),
    named = found[2] ? `${BigInt(found[2])}` : found[3];
  if (word === "create" || word === "skip") {
    if (named) throw new Error(`“${text}”: ${word} takes no number`);
    return word;
  }
  if (word === "merge") {
    if (!mergeable) throw new Error(`“${text}”, but ${resource} cannot be merged`);
    return named ? `merge ${named}` : "merge";
  }
  const number = named ?? idIn(cells.candidates);
  if (!number) throw new Error(`“${text}” names no record of the target: write its number after it (${word} 123)`);
  return `${word} ${number}`;
}

/** What a file decides: pairs of conflict and decision. Throws an Error that lists what cannot be used. */
function decisionsIn(text, byKey, mergeable) {
  const pairs = [],
    mistakes = [];
  const lines = linesOf(text);
  for (const { line, cells } of lines) {
    if (!plain(cells.decision)) continue;
    const resource = plain(cells.resource).toLowerCase().replaceAll(" ", "_");
    const number = idIn(cells.source_id);
    try {
      const row = number && byKey.get(`${resource} ${number}`);
      if (!row) throw new Error(`this plan does not ask about ${resource || "a record"} ${number ?? ""}`);
      pairs.push([row, decisionIn(cells, resource, mergeable.has(resource))]);
    } catch (error) {
      mistakes.push(`line ${line}: ${error.message}`);
    }
  }
  if (mistakes.length) {
    const more = mistakes.length > MISTAKES_LISTED ? [`and ${mistakes.length - MISTAKES_LISTED} more`] : [];
    throw new Error([...mistakes.slice(0, MISTAKES_LISTED), ...more].join("; "));
  }
  return pairs;
}
