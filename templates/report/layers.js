const CAUSES = {
  issue: "instructions",
  load: "loads",
  multiply: "multiplier",
  fpu: "float unit",
  branch: "branches",
  fetch: "waiting for code",
  data: "waiting for constants",
};

function causes(of) {
  const parts = Object.entries(of.cycles_by_cause || {}).filter(([, value]) => value > 0);
  const order = Object.keys(CAUSES);
  return parts.map(([name, value]) => ({
    label: CAUSES[name] || name,
    value,
    colour: colour(Math.max(0, order.indexOf(name))),
  }));
}

function layerColumns() {
  const share = (row) => (costOf(row) || 0) / costSum;
  const widest = Math.max(...layers.map(share), 1e-9);
  const insns = (row) => (hasInsns ? row.insns : row.insns_estimate);
  const shareBar = (row) =>
    el(
      "div",
      { class: "bar", title: percent(share(row)) },
      el("i", { style: { width: `${(100 * share(row)) / widest}%`, background: "var(--c4)" } }),
    );
  const numbered = (title, value, note) => ({ title, value, text: (row) => count(value(row)), n: true, about: note });
  return [
    { title: "#", value: (row) => layers.indexOf(row), n: true },
    { title: "layer", value: (row) => row.name, wide: true },
    { title: "operator", value: (row) => row.op },
    { title: "kernel", value: (row) => row.kernel },
    numbered("MACs", (row) => row.macs, "multiply-accumulates"),
    numbered(hasInsns ? "instructions" : "instructions (est.)", insns),
    {
      title: "per MAC",
      value: (row) => (row.macs ? insns(row) / row.macs : null),
      n: true,
      about: "instructions per multiply-accumulate",
      text: (row) => (row.macs ? digits(insns(row) / row.macs, 2) : "–"),
    },
    ...(hasCycles
      ? [
          numbered("cycles", (row) => row.cycles, "modeled"),
          { title: "ms", value: (row) => row.ms, text: (row) => digits(row.ms, 3), n: true },
          ...(report.uj !== undefined
            ? [{ title: "µJ", value: (row) => row.uj, text: (row) => digits(row.uj, 2), n: true }]
            : []),
          {
            title: "spent on",
            value: (row) => stallShare(row),
            node: (row) => stackedBar(causes(row), false),
            about: "sorts by the share that is no instruction",
          },
        ]
      : [numbered("cycles (est.)", (row) => row.cycles_estimate)]),
    { title: "share", value: share, text: (row) => percent(share(row)), n: true, about: `of ${costUnit}` },
    { title: "", value: share, node: shareBar },
    numbered(
      "live bytes",
      (row) => row.arena_live_bytes,
      "tensors and scratch that this layer needs at once; they may overlap, so the arena can be smaller",
    ),
    numbered(
      "constants",
      constantBytes,
      "bytes in flash that the layer reads; a constant of several layers counts in each",
    ),
  ];
}

function stallShare(row) {
  const issue = (row.cycles_by_cause || {}).issue || 0;
  return row.cycles ? 1 - issue / row.cycles : 0;
}

function drawLayers() {
  if (hasCycles) {
    const parts = causes(report);
    section("layers").append(
      el("p", { class: "about" }, `${count(report.cycles)} cycles of one inference, by what they are spent on`),
      stackedBar(parts, true),
      legend(parts, ""),
    );
  }
  const search = el("input", { type: "search", placeholder: "filter the table", "aria-label": "filter the table" });
  section("layers").append(
    el(
      "div",
      { class: "tools" },
      search,
      el("span", {}, "Click a column to sort, a row to see the layer in the graph."),
    ),
  );
  const made = table(layerColumns(), layers, { onrow: (row) => choose(layers.indexOf(row)), foot: totalRow() });
  section("layers").append(made.node);
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    for (const { row, line } of made.lines)
      line.hidden = !`${row.name}\n${row.op}\n${row.kernel}`.toLowerCase().includes(wanted);
  });
  listeners.push((index) =>
    made.lines.forEach(({ row, line }) => line.classList.toggle("chosen", layers[index] === row)),
  );
}

function totalRow() {
  const insns = hasInsns ? report.insns : report.insns_estimate;
  const energy = report.uj !== undefined ? [digits(report.uj, 2)] : [];
  const timed = hasCycles
    ? [count(report.cycles), digits(report.ms, 3), ...energy, ""]
    : [count(report.cycles_estimate)];
  const cells = [
    "",
    "whole inference",
    "",
    "",
    count(report.macs),
    count(insns),
    report.macs ? digits(insns / report.macs, 2) : "–",
    ...timed,
    "",
    "",
    count(report.arena_bytes),
    count(report.weights_bytes),
  ];
  return el("tr", {}, ...cells.map((text, i) => el("td", { class: i === 0 || i > 3 ? "n" : null }, text)));
}
