const FIGURES = [
  ["arena (RAM)", "arena_bytes"],
  ["stack, worst case", "stack_bound_bytes"],
  ["stack, measured", "stack_bytes"],
  ["stack, estimated", "stack_bytes_estimate"],
  ["code", "text_bytes"],
  ["code, estimated", "text_bytes_estimate"],
  ["constants of the model", "weights_bytes"],
  ["all read-only data", "rodata_bytes"],
  ["multiply-accumulates", "macs"],
  ["instructions", "insns"],
  ["instructions, estimated", "insns_estimate"],
  ["cycles", "cycles"],
  ["cycles, estimated", "cycles_estimate"],
  ["ms", "ms"],
];

function change(before, now) {
  if (!Number.isFinite(before) || !Number.isFinite(now)) return el("span", {}, "–");
  const share = before ? (100 * (now - before)) / before : 0;
  const sign = now > before ? "+" : "";
  const text =
    now === before
      ? "same"
      : `${sign}${format.format(Number((now - before).toFixed(4)))} (${sign}${share.toFixed(2)} %)`;
  return el("span", { class: now === before ? null : now < before ? "better" : "worse" }, text);
}

function compareColumns(value, before) {
  return [
    { title: "before", value: before, text: (row) => count(before(row)), n: true },
    { title: "now", value, text: (row) => count(value(row)), n: true },
    {
      title: "change",
      value: (row) => (value(row) ?? 0) - (before(row) ?? 0),
      node: (row) => change(before(row), value(row)),
      n: true,
    },
  ];
}

const alike = (a, b) => a.op === b.op && a.macs === b.macs;

/* Layers of one name are the same layer; where no name is, those of two networks with the same operators and sizes are. */
function pairedLayers(other) {
  const same = other.layers.length === layers.length && other.layers.every((layer, i) => alike(layer, layers[i]));
  const names = new Set(layers.map((layer) => layer.name));
  if (same && !other.layers.some((layer) => names.has(layer.name))) {
    return layers.map((layer, i) => ({ name: layer.name, now: layer, before: other.layers[i] }));
  }
  const left = new Map();
  for (const layer of other.layers) left.set(layer.name, [...(left.get(layer.name) || []), layer]);
  const rows = layers.map((layer) => ({
    name: layer.name,
    now: layer,
    before: (left.get(layer.name) || []).shift(),
  }));
  const gone = [...left.values()].flat().map((layer) => ({ name: layer.name, before: layer }));
  return [...rows, ...gone];
}

function drawComparison() {
  const other = page.against;
  if (!other) return section("comparison").classList.add("empty");
  about(
    "comparison",
    `now: ${report.model} on ${report.board} (${report.options}); before: ${other.model} on ${other.board} (${other.options})`,
  );
  const both = (key) => Number.isFinite(report[key]) && Number.isFinite(other[key]);
  const measured = (key) => key.endsWith("_estimate") && both(key.replace("_estimate", ""));
  const known = FIGURES.filter(
    ([, key]) => !measured(key) && (Number.isFinite(report[key]) || Number.isFinite(other[key])),
  );
  const totals = [
    { title: "", value: (row) => row[0] },
    ...compareColumns(
      (row) => report[row[1]],
      (row) => other[row[1]],
    ),
  ];
  section("comparison").append(table(totals, known).node);
  const key = both("cycles") ? "cycles" : both("insns") ? "insns" : "cycles_estimate";
  const columns = [
    { title: "layer", value: (row) => row.name, wide: true },
    { title: "kernel now", value: (row) => (row.now ? row.now.kernel : "gone") },
    { title: "kernel before", value: (row) => (row.before ? row.before.kernel : "not there") },
    ...compareColumns(
      (row) => row.now && row.now[key],
      (row) => row.before && row.before[key],
    ),
  ];
  section("comparison").append(
    el("h3", {}, `Layers, ${key === "insns" ? "instructions" : key === "cycles" ? "cycles" : "estimated cycles"}`),
    table(columns, pairedLayers(other)).node,
  );
}
