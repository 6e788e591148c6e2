"use strict";
// Displays the descriptions of the page and sends GET requests to this service. The sign-in is lost with the page.
const descriptions = JSON.parse(document.getElementById("descriptions").textContent);
const DISPLAYED_HEADERS = ["content-type", "x-total", "link", "x-api-deprecation", "www-authenticate", "retry-after"];
const signIn = { token: "", user: "", password: "" };
let version = Object.keys(descriptions)[0];

function element(name, attributes = {}, ...children) {
  const created = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) created.addEventListener(key.slice(2), value);
    else created.setAttribute(key, value);
  }
  created.append(...children.filter((child) => child !== null && child !== undefined));
  return created;
}

function field(label, key, type) {
  const input = element("input", { type, value: signIn[key], oninput: (event) => { signIn[key] = event.target.value; } });
  return element("label", {}, label, input);
}

function showVersions() {
  const buttons = Object.keys(descriptions).map((name) => element("button", {
    type: "button", "aria-pressed": String(name === version), onclick: () => { version = name; show(); },
  }, name));
  document.querySelector(".versions").replaceChildren(...buttons);
  const fields = usesTokens() ? [field("Access token", "token", "password")]
    : [field("E-mail address", "user", "text"), field("Password", "password", "password")];
  document.querySelector(".sign-in").replaceChildren(...fields);
  document.querySelector(".about").textContent = descriptions[version].info.description;
}

function usesTokens() {
  return "oauth2" in descriptions[version].components.securitySchemes;
}

function authorization() {
  if (usesTokens()) return signIn.token && `Bearer ${signIn.token}`;
  const bytes = new TextEncoder().encode(`${signIn.user}:${signIn.password}`);
  return signIn.user && `Basic ${btoa(String.fromCharCode(...bytes))}`;
}

function operations() {
  const wanted = document.getElementById("filter").value.toLowerCase();
  return Object.entries(descriptions[version].paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  ).filter(({ path, method, operation }) => `${method} ${path} ${operation.summary}`.toLowerCase().includes(wanted));
}

function showOperations() {
  const groups = new Map();
  for (const each of operations()) {
    const group = each.path.split("/")[1];
    groups.set(group, [...(groups.get(group) ?? []), each]);
  }
  const parts = [...groups].flatMap(([group, members]) => [
    element("h2", {}, group.replaceAll("_", " ")), ...members.map(operationDetails),
  ]);
  document.getElementById("operations").replaceChildren(...(parts.length ? parts : [element("p", {}, "No such operation.")]));
}

function operationDetails(each) {
  const scopes = (each.operation.security ?? []).flatMap((scheme) => scheme.oauth2 ?? []);
  const details = element("details", {}, element("summary", {},
    element("span", { class: `method ${each.method}` }, each.method),
    element("span", { class: "path" }, each.path),
    element("span", { class: "what" }, each.operation.summary),
    ...scopes.map((scope) => element("span", { class: "scope" }, scope)),
  ));
  details.addEventListener("toggle", () => { if (details.children.length === 1) details.append(inside(each)); });
  return details;
}

function inside({ path, method, operation }) {
  const parameters = operation.parameters ?? [];
  const payload = operation.requestBody?.content["application/json"].schema;
  return element("div", { class: "inside" },
    operation.description ? element("p", {}, operation.description) : null,
    ...(payload ? [element("h3", {}, "Payload"), schemaTable(payload)] : []),
    ...(parameters.length ? [element("h3", {}, "Parameters"), parameterTable(parameters)] : []),
    element("h3", {}, "Responses"), responseTable(operation.responses),
    ...(method === "GET" ? [element("h3", {}, "Try it"), tryIt(path, parameters)] : []),
  );
}

function row(name, ...cells) {
  return element("tr", {}, element("th", { scope: "row" }, element("code", {}, name)), ...cells.map((cell) => element("td", {}, cell)));
}

function parameterTable(parameters) {
  return element("table", {}, ...parameters.map((each) =>
    row(each.name, typeName(each.schema), (each.deprecated ? "Deprecated. " : "") + (each.description ?? `in ${each.in}`))));
}

function responseTable(responses) {
  return element("table", {}, ...Object.entries(responses).map(([status, response]) =>
    row(status, response.description, Object.values(response.content ?? {}).map(({ schema }) => typeName(schema)).join(", "))));
}

function schemaTable(schema) {
  const known = resolved(schema);
  const required = known.required ?? [];
  return element("table", {}, ...Object.entries(known.properties ?? {}).map(([name, rule]) =>
    row(name, typeName(rule), (required.includes(name) ? "Required. " : "") + (rule.description ?? ""))));
}

function resolved(schema) {
  return schema.$ref ? descriptions[version].components.schemas[schema.$ref.split("/").pop()] : schema;
}

function typeName(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(typeName).join(" or ");
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" or ");
  if (schema.type === "array") return `list of ${typeName(schema.items)}`;
  if (schema.type === "object" && schema.properties) return `{${Object.keys(schema.properties).join(", ")}}`;
  return [schema.type ?? "anything"].flat().join(" or ") + (schema.format ? ` (${schema.format})` : "");
}

function tryIt(path, parameters) {
  const inputs = parameters.map((each) => element("input", { name: each.name, type: "text" }));
  const result = element("div", { "aria-live": "polite" });
  const form = element("form", { onsubmit: (event) => { event.preventDefault(); send(address(path, parameters, inputs), result); } },
    element("div", { class: "fields" }, ...inputs.map((input) => element("label", {}, input.name, input))),
    element("button", { class: "send" }, "Send"));
  return element("div", {}, form, result);
}

function address(path, parameters, inputs) {
  const query = new URLSearchParams();
  let target = path;
  parameters.forEach((each, position) => {
    const value = inputs[position].value;
    if (each.in === "path") target = target.replace(`{${each.name}}`, encodeURIComponent(value || "1"));
    else if (value) query.append(each.name, value);
  });
  return descriptions[version].servers[0].url + target + (query.size ? `?${query}` : "");
}

async function send(target, result) {
  const header = authorization();
  result.replaceChildren(element("p", { class: "quiet" }, `GET ${target}`));
  try {
    const response = await fetch(target, { headers: header ? { Authorization: header } : {}, credentials: "omit" });
    const text = await response.text();
    const headers = DISPLAYED_HEADERS.filter((name) => response.headers.has(name));
    result.append(
      element("p", { class: "status" }, `${response.status} ${response.statusText}`),
      element("table", {}, ...headers.map((name) => row(name, response.headers.get(name)))),
      element("pre", { tabindex: "0" }, pretty(text)));
  } catch (problem) {
    result.append(element("p", { class: "status" }, `No response: ${problem.message}`));
  }
}

function pretty(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}

function show() { showVersions(); showOperations(); }

document.getElementById("filter").addEventListener("input", showOperations);
show();
