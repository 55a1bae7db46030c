const LIMITS = { s4: [-8, 7], s8: [-128, 127], u8: [0, 255], s16: [-32768, 32767], u16: [0, 65535] };

/* The quantized value that a profiled float value became. */
function quantOf(name, known) {
  for (const end of ["", "_quantized", "_q", ".q"]) {
    const found = known.get(name + end) || known.get(`${name}${end}.nhwc`);
    if (found) return found;
  }
  return name.endsWith("_f") ? known.get(`${name.slice(0, -2)}_q`) : undefined;
}

function rangeOf(quant) {
  const limits = quant && LIMITS[quant.dtype];
  if (!limits || quant.scales !== 1 || quant.zero_point === null) return null;
  return limits.map((code) => (code - quant.zero_point) * quant.scale_min);
}

function drawnHistogram(h, range) {
  const [low, high] = range ? [Math.min(h.low, range[0]), Math.max(h.high, range[1])] : [h.low, h.high];
  const span = high - low || 1;
  const x = (value) => (220 * (value - low)) / span;
  const most = Math.sqrt(Math.max(...h.counts, 1));
  const width = (h.high - h.low) / h.counts.length || span / h.counts.length;
  const cutOff = (middle) => Boolean(range) && (middle < range[0] - width || middle > range[1] + width);
  const bars = h.counts.map((n, i) => {
    const middle = h.low + (i + 0.5) * width;
    const tall = (66 * Math.sqrt(n)) / most;
    return n
      ? svg("rect", {
          class: cutOff(middle) ? "cut" : null,
          x: x(middle - width / 2),
          y: 70 - tall,
          width: Math.max(1, x(low + width) - 0.4),
          height: tall,
        })
      : null;
  });
  const marks = (range || []).map((value) => svg("line", { x1: x(value), x2: x(value), y1: 0, y2: 70 }));
  const lost = h.counts.reduce((s, n, i) => s + (cutOff(h.low + (i + 0.5) * width) ? n : 0), 0);
  const all = h.counts.reduce((s, n) => s + n, 0) || 1;
  return {
    node: svg("svg", { viewBox: "0 0 220 70", preserveAspectRatio: "none" }, ...bars, ...marks),
    lost: lost / all,
  };
}

function plot(h, quant) {
  const range = rangeOf(quant);
  const drawn = drawnHistogram(h, range);
  const first = `seen ${short(h.low)} to ${short(h.high)}`;
  const second = range
    ? `codes reach ${short(range[0])} to ${short(range[1])}, ${percent(drawn.lost)} cut off`
    : "not quantized under this name";
  return el(
    "div",
    { class: "plot" },
    el("b", { title: h.name }, h.name),
    drawn.node,
    el("small", {}, first, el("br"), second),
  );
}

function errorTable(rows) {
  const most = 20; /* dB at which the bar is full: the first rounding of an exact value would dwarf all others */
  const bar = (row) =>
    el(
      "div",
      { class: "bar" },
      el("i", { style: { width: `${Math.min(100, (100 * row.lost_db) / most)}%`, background: "var(--c4)" } }),
    );
  const columns = [
    { title: "node", value: (row) => row.node, wide: true },
    { title: "operator", value: (row) => row.op },
    {
      title: "SQNR dB",
      value: (row) => row.sqnr_db,
      text: (row) => digits(row.sqnr_db, 1),
      n: true,
      about: "signal to quantization noise",
    },
    {
      title: "lost here dB",
      value: (row) => row.lost_db,
      text: (row) => digits(row.lost_db, 1),
      n: true,
      about: "below the worst of its inputs",
    },
    { title: "", value: (row) => row.lost_db, node: bar },
    { title: "cosine", value: (row) => row.cosine, text: (row) => digits(row.cosine, 6), n: true },
    {
      title: "RMSE / largest",
      value: (row) => row.rmse_over_largest,
      text: (row) => digits(row.rmse_over_largest, 5),
      n: true,
    },
  ];
  return table(columns, rows).node;
}

function scoreTable(scores) {
  const share = (key) => ({ value: (row) => row[key], text: (row) => percent(row[key] ?? NaN), n: true });
  const columns = [
    { title: "machine", value: (row) => row.machine, wide: true },
    { title: "samples", value: (row) => row.samples, n: true },
    { title: "top-1", ...share("top1") },
    { title: "top-5", ...share("top5") },
    { title: "as the first", ...share("agree") },
    { title: "AUC", value: (row) => row.auc, text: (row) => digits(row.auc ?? NaN, 4), n: true },
    { title: "cosine", value: (row) => row.cosine, text: (row) => digits(row.cosine ?? NaN, 6), n: true },
  ];
  return table(columns, scores).node;
}

function quantTable(rows) {
  const columns = [
    { title: "value", value: (row) => row.name, wide: true },
    { title: "kind", value: (row) => (row.constant ? "constant" : "activation") },
    { title: "type", value: (row) => `${row.dtype} ${row.shape.join("×")}` },
    {
      title: "scales",
      value: (row) => row.scales,
      text: (row) => (row.axis === null ? "one" : `${row.scales} on axis ${row.axis}`),
      n: true,
    },
    { title: "least scale", value: (row) => row.scale_min, text: (row) => short(row.scale_min), n: true },
    { title: "largest scale", value: (row) => row.scale_max, text: (row) => short(row.scale_max), n: true },
    {
      title: "spread",
      value: (row) => row.scale_max / row.scale_min,
      text: (row) => `${digits(row.scale_max / row.scale_min, 1)}×`,
      n: true,
      about: "largest over least scale: channels that differ much",
    },
    {
      title: "zero point",
      value: (row) => row.zero_point,
      text: (row) => (row.zero_point === null ? "several" : String(row.zero_point)),
      n: true,
    },
  ];
  return table(columns, rows).node;
}

function drawQuantisation() {
  const here = section("quantisation");
  const known = new Map(report.quantisation.map((q) => [q.name, q]));
  const evaluated = page.evaluated;
  if (!known.size && !page.histograms.length && !evaluated) return here.classList.add("empty");
  if (evaluated) {
    here.append(el("h3", {}, `Scores on ${count(evaluated.samples)} samples`), scoreTable(evaluated.scores));
    if (evaluated.layers.length)
      here.append(el("h3", {}, "Each layer against the float model"), errorTable(evaluated.layers));
  }
  if (page.histograms.length) {
    const found = page.histograms.map((h) => plot(h, quantOf(h.name, known)));
    here.append(
      el("h3", {}, "Values seen (height: square root of the count; dashed: what the codes reach; red: cut off)"),
    );
    here.append(el("div", { class: "plots" }, ...found.slice(0, 60)));
    if (found.length > 60)
      here.append(
        el(
          "details",
          {},
          el("summary", {}, `${found.length - 60} more`),
          el("div", { class: "plots" }, ...found.slice(60)),
        ),
      );
  }
  if (known.size)
    here.append(
      el("details", {}, el("summary", {}, `${known.size} quantized values`), quantTable(report.quantisation)),
    );
}
