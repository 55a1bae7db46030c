const page = JSON.parse(document.getElementById("data").textContent);
const report = page.report;
const layers = report.layers;
const byName = new Map(report.tensors.map((t) => [t.name, t]));
const bytesOf = new Map(report.constants.map((c) => [c.name, c.size_bytes]));
const format = new Intl.NumberFormat("en-US");
const COLOURS = 8;

function count(value) {
  return value === null || value === undefined ? "–" : format.format(value);
}

function bytes(value) {
  return value === null || value === undefined ? "–" : `${format.format(value)} bytes`;
}

function percent(share) {
  return Number.isFinite(share) ? `${(100 * share).toFixed(1)} %` : "–";
}

function digits(value, places) {
  return Number.isFinite(value) ? value.toFixed(places) : "–";
}

function short(value) {
  return Number.isFinite(value) ? String(Number(value.toPrecision(4))) : "–";
}

function typeOf(tensor) {
  return tensor ? `${tensor.dtype} ${tensor.shape.join("×")}` : "";
}

function cut(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/* Long names differ at their ends: the middle goes. */
function brief(text, most) {
  const head = Math.floor(most * 0.4);
  return text.length > most ? `${text.slice(0, head)}…${text.slice(head + 1 - most)}` : text;
}

function colour(index) {
  return `var(--c${index % COLOURS})`;
}

/* Children that are strings become text, never markup. */
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined && c !== ""));
  return node;
}

function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function section(id) {
  return document.getElementById(id);
}

function about(id, text) {
  section(id).append(el("p", { class: "about" }, text));
}

const tip = document.getElementById("tip");

function showTip(event, text) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
  const below = event.clientY + 16 + box.height < window.innerHeight;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${below ? event.clientY + 16 : Math.max(4, event.clientY - box.height - 10)}px`;
}

function hideTip() {
  tip.hidden = true;
}

function tipped(node, text) {
  node.addEventListener("mousemove", (event) => showTip(event, text));
  node.addEventListener("mouseleave", hideTip);
  return node;
}

/* Which layer is chosen, everywhere on the page. */
const listeners = [];
let chosen = null;

function choose(index) {
  chosen = index;
  for (const listener of listeners) listener(index);
}

/* What a layer takes: counted where it was, else estimated. */
const hasCycles = report.cycles !== undefined && report.cycles !== null;
const hasInsns = report.insns !== undefined && report.insns !== null;

function costOf(layer) {
  if (hasCycles) return layer.cycles;
  return hasInsns ? layer.insns : layer.cycles_estimate;
}

const costUnit = hasCycles ? "cycles, modeled" : hasInsns ? "instructions, counted" : "cycles, estimated";
const costSum = layers.reduce((sum, layer) => sum + (costOf(layer) || 0), 0) || 1;

function constantBytes(layer) {
  return layer.constants.reduce((sum, name) => sum + (bytesOf.get(name) || 0), 0);
}

function stackedBar(parts, tall) {
  const total = parts.reduce((sum, part) => sum + part.value, 0) || 1;
  const bar = el("div", { class: tall ? "bar tall" : "bar" });
  parts.forEach((part) => {
    const wide = `${(100 * part.value) / total}%`;
    const piece = el("i", { style: { width: wide, background: part.colour } });
    bar.append(tipped(piece, `${part.label}: ${count(part.value)} (${percent(part.value / total)})`));
  });
  return bar;
}

function legend(parts, unit) {
  const total = parts.reduce((sum, part) => sum + part.value, 0) || 1;
  const entries = parts.map((part) =>
    el(
      "span",
      {},
      el("i", { style: { background: part.colour } }),
      `${part.label}: ${count(part.value)}${unit} (${percent(part.value / total)})`,
    ),
  );
  return el("div", { class: "legend" }, ...entries);
}

/* A table whose columns sort: {title, value(row), text(row) or node(row), n: a number}. */
function table(columns, rows, options) {
  const settings = options || {};
  const body = el("tbody", {});
  const made = rows.map((row, index) => {
    const cells = columns.map((c) =>
      c.wide
        ? el("td", { title: String(c.value(row)) }, brief(String(c.value(row)), 30))
        : el("td", { class: c.n ? "n" : null }, c.node ? c.node(row) : c.text ? c.text(row) : String(c.value(row))),
    );
    const line = el("tr", {}, ...cells);
    if (settings.onrow) line.addEventListener("click", () => settings.onrow(row, index));
    return { row, line };
  });
  const heads = columns.map((c) =>
    el("th", { class: c.n ? "n sorts" : "sorts", tabindex: 0, title: c.about }, c.title),
  );
  const lines = (order) => body.replaceChildren(...order.map((entry) => entry.line));
  columns.forEach((column, at) => {
    const sort = () => {
      const down = heads[at].getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
      const start = column.n || heads[at].hasAttribute("aria-sort") ? down : "ascending";
      heads.forEach((head) => head.removeAttribute("aria-sort"));
      heads[at].setAttribute("aria-sort", start);
      const sign = start === "ascending" ? 1 : -1;
      lines([...made].sort((a, b) => sign * compared(column.value(a.row), column.value(b.row))));
    };
    heads[at].addEventListener("click", sort);
    heads[at].addEventListener("keydown", (event) => event.key === "Enter" && sort());
  });
  lines(made);
  const foot = settings.foot ? el("tfoot", {}, settings.foot) : null;
  const whole = el("table", {}, el("thead", {}, el("tr", {}, ...heads)), body, foot);
  return { node: el("div", { class: "scroll" }, whole), lines: made };
}

function compared(a, b) {
  if (typeof a === "string" || typeof b === "string")
    return String(a).localeCompare(String(b), "en", { numeric: true });
  return (a === null || a === undefined ? -1 : a) - (b === null || b === undefined ? -1 : b);
}
