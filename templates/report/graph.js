const NODE = { w: 236, h: 62, gap: 26, rise: 28 };

/* Layers by rank (the longest way from an input), with points for edges that pass ranks. */
function ranked(count_, edges) {
  const rank = new Array(count_).fill(0);
  for (const edge of edges) rank[edge.to] = Math.max(rank[edge.to], rank[edge.from] + 1);
  const rows = [];
  const put = (item) => (rows[item.rank] = rows[item.rank] || []).push(item) && item;
  const items = rank.map((r, index) => put({ index, rank: r, w: NODE.w, x: 0, up: [], down: [] }));
  const paths = edges.map((edge) => {
    const way = [items[edge.from]];
    for (let r = rank[edge.from] + 1; r < rank[edge.to]; r++) {
      way.push(put({ index: null, rank: r, w: 16, x: 0, up: [], down: [] }));
    }
    way.push(items[edge.to]);
    for (let i = 1; i < way.length; i++) {
      way[i - 1].down.push(way[i]);
      way[i].up.push(way[i - 1]);
    }
    return way;
  });
  return { items, rows: rows.map((row) => row || []), paths };
}

const mean = (list, otherwise) => (list.length ? list.reduce((s, i) => s + i.x, 0) / list.length : otherwise);

/* Sort each row by where its neighbours are, then push its items apart and back over the neighbours' middle. */
function placeRow(row, side, sorts) {
  const want = new Map(row.map((item) => [item, mean(item[side], item.x)]));
  if (sorts) row.sort((a, b) => want.get(a) - want.get(b));
  let edge = -Infinity;
  for (const item of row) {
    item.x = Math.max(want.get(item), edge + item.w / 2);
    edge = item.x + item.w / 2 + NODE.gap;
  }
  const off = row.reduce((s, item) => s + want.get(item) - item.x, 0) / (row.length || 1);
  for (const item of row) item.x += off;
}

function laidOut(total, edges) {
  const plan = ranked(total, edges);
  plan.rows.forEach((row) => row.forEach((item, i) => (item.x = (i - (row.length - 1) / 2) * (NODE.w + NODE.gap))));
  for (let sweep = 0; sweep < 6; sweep++) {
    plan.rows.forEach((row) => placeRow(row, "up", true));
    [...plan.rows].reverse().forEach((row) => placeRow(row, "down", true));
  }
  plan.rows.forEach((row) => placeRow(row, "up", false));
  for (const item of plan.rows.flat()) item.y = item.rank * (NODE.h + NODE.rise);
  return plan;
}

/* Ports of the model stand beside its layers: inputs first, outputs last. */
function graphOf() {
  const nodes = layers.map((layer, index) => ({ layer, index }));
  const edges = [];
  const inputs = new Map();
  const port = (name, kind) => nodes.push({ port: name, kind }) - 1;
  for (const edge of page.edges) {
    if (edge.source === null && !inputs.has(edge.tensor)) {
      const tensor = byName.get(edge.tensor);
      inputs.set(edge.tensor, port(edge.tensor, tensor ? tensor.kind : "input"));
    }
    edges.push({
      from: edge.source === null ? inputs.get(edge.tensor) : edge.source,
      to: edge.target,
      tensor: edge.tensor,
    });
  }
  for (const output of report.outputs || []) {
    const storage = (byName.get(output.name) || {}).storage;
    const writes = (layer) =>
      layer.writes.some((n) => n === output.name || (storage && (byName.get(n) || {}).storage === storage));
    const from = layers.findLastIndex(writes);
    if (from >= 0) edges.push({ from, to: port(output.name, "output"), tensor: output.name });
  }
  return { nodes, edges: inTopologicalOrder(nodes.length, edges) };
}

function inTopologicalOrder(total, edges) {
  const inputs = new Set(edges.map((edge) => edge.from).filter((n) => n >= layers.length));
  const position = (n) => (inputs.has(n) ? -1 : n);
  return [...edges].sort((a, b) => position(a.from) - position(b.from));
}

function drawnNode(node, item) {
  const box = svg("rect", { class: "box", width: NODE.w, height: NODE.h, rx: 6 });
  const at = `translate(${item.x - NODE.w / 2} ${item.y})`;
  if (!node.layer) {
    const tensor = byName.get(node.port);
    return svg(
      "g",
      { class: "node port", transform: at },
      box,
      svg("text", { x: 12, y: 25, class: "strong" }, brief(`${node.kind} ${node.port}`, 28)),
      svg("text", { x: 12, y: 43, class: "soft" }, cut(typeOf(tensor), 38)),
    );
  }
  const layer = node.layer;
  const out = byName.get(layer.writes[0]);
  const share = (costOf(layer) || 0) / costSum;
  return svg(
    "g",
    { class: "node", transform: at, tabindex: 0 },
    box,
    svg("rect", { width: 5, height: NODE.h, rx: 2, fill: colour(families.indexOf(family(layer))) }),
    svg("text", { x: 14, y: 17, class: "strong" }, brief(`${node.index} ${layer.op} ${layer.name}`, 28)),
    svg("text", { x: 14, y: 32, class: "soft" }, cut(layer.kernel, 38)),
    svg("text", { x: 14, y: 47 }, cut(out ? `→ ${typeOf(out)}` : "", 38)),
    svg("rect", { class: "track", x: 14, y: 53, width: NODE.w - 28, height: 4, rx: 2 }),
    svg("rect", { class: "cost", x: 14, y: 53, width: Math.max(0, share * (NODE.w - 28)), height: 4, rx: 2 }),
  );
}

const family = (layer) => layer.kernel.split("__")[0];
const families = [...new Set(layers.map(family))];

function curve(way) {
  const points = way.map((item, i) => {
    const first = i === 0;
    const passes = item.index === null;
    return { x: item.x, from: first ? item.y + NODE.h : item.y, to: passes ? item.y + NODE.h : item.y + NODE.h };
  });
  let path = `M${points[0].x} ${points[0].from}`;
  for (let i = 1; i < points.length; i++) {
    const top = i === 1 ? points[0].from : points[i - 1].to;
    const middle = (top + points[i].from) / 2;
    path += ` C${points[i - 1].x} ${middle} ${points[i].x} ${middle} ${points[i].x} ${points[i].from}`;
    if (i < points.length - 1) path += ` L${points[i].x} ${points[i].to}`;
  }
  return path;
}

function drawGraph() {
  const { nodes, edges } = graphOf();
  const plan = laidOut(nodes.length, edges);
  const lines = edges.map((edge, i) => {
    const line = svg("path", { class: "edge", d: curve(plan.paths[i]) });
    return tipped(line, `${edge.tensor}\n${typeOf(byName.get(edge.tensor))}`);
  });
  const boxes = nodes.map((node, i) => drawnNode(node, plan.items[i]));
  boxes.forEach((box, i) => {
    if (!nodes[i].layer) return;
    box.addEventListener("click", () => choose(i));
    box.addEventListener("keydown", (event) => event.key === "Enter" && choose(i));
  });
  const inner = svg("g", {}, ...lines, ...boxes);
  const canvas = el("div", { id: "canvas", class: "canvas" }, svg("svg", {}, inner));
  const details = el("div", { id: "details" }, ...costliest());
  const view = panned(canvas, inner, plan);
  section("graph").append(graphTools(nodes, boxes, plan, view), el("div", { class: "split" }, canvas, details));
  view.home();
  listeners.push((index) => {
    boxes.forEach((box, i) => box.classList.toggle("chosen", i === index));
    lines.forEach((line, i) => line.classList.toggle("chosen", edges[i].from === index || edges[i].to === index));
    details.replaceChildren(...layerDetails(index));
    view.show(plan.items[index]);
  });
}

/* Drag to pan; Ctrl and the wheel, or the buttons, to zoom. */
function panned(canvas, inner, plan) {
  const xs = plan.items.flatMap((item) => [item.x - item.w / 2, item.x + item.w / 2]);
  const tall = Math.max(...plan.items.map((item) => item.y)) + NODE.h;
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const at = { x: 0, y: 0, k: 1 };
  const draw = () => inner.setAttribute("transform", `translate(${at.x} ${at.y}) scale(${at.k})`);
  const size = () => canvas.getBoundingClientRect();
  const zoom = (factor, cx, cy) => {
    const k = Math.min(4, Math.max(0.02, at.k * factor));
    at.x = cx - ((cx - at.x) * k) / at.k;
    at.y = cy - ((cy - at.y) * k) / at.k;
    at.k = k;
    draw();
  };
  const middle = (factor) => zoom(factor, size().width / 2, size().height / 2);
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = size();
      zoom(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
    },
    { passive: false },
  );
  let from = null;
  canvas.addEventListener("pointerdown", (event) => (from = { x: event.clientX - at.x, y: event.clientY - at.y }));
  window.addEventListener("pointerup", () => (from = null));
  window.addEventListener("pointermove", (event) => {
    if (!from) return;
    at.x = event.clientX - from.x;
    at.y = event.clientY - from.y;
    draw();
  });
  const home = () => {
    const first = plan.rows[0] || [];
    at.k = Math.max(0.75, Math.min(1, (size().width - 40) / (right - left)));
    at.x = size().width / 2 - at.k * mean(first, 0);
    at.y = 20;
    draw();
  };
  const fit = () => {
    at.k = Math.min(1, (size().width - 30) / (right - left), (size().height - 30) / tall);
    at.x = size().width / 2 - (at.k * (left + right)) / 2;
    at.y = (size().height - at.k * tall) / 2;
    draw();
  };
  const show = (item) => {
    const [x, y] = [at.x + at.k * item.x, at.y + at.k * item.y];
    if (x > 60 && x < size().width - 60 && y > 0 && y + at.k * NODE.h < size().height) return;
    at.k = Math.max(at.k, 0.7);
    at.x = size().width / 2 - at.k * item.x;
    at.y = size().height / 2 - at.k * (item.y + NODE.h / 2);
    draw();
  };
  return { home, fit, show, middle };
}

function graphTools(nodes, boxes, plan, view) {
  const found = el("span", {});
  const search = el("input", {
    type: "search",
    placeholder: "layer, operator, kernel or tensor",
    "aria-label": "search the graph",
  });
  const texts = nodes.map((node) =>
    (node.layer
      ? [node.layer.name, node.layer.op, node.layer.kernel, ...node.layer.reads, ...node.layer.writes].join("\n")
      : node.port
    ).toLowerCase(),
  );
  let matches = [];
  let next = 0;
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    matches = wanted ? texts.flatMap((text, i) => (text.includes(wanted) ? [i] : [])) : [];
    next = 0;
    boxes.forEach((box, i) => box.classList.toggle("away", Boolean(wanted) && !matches.includes(i)));
    found.textContent = wanted ? `${matches.length} found${matches.length ? ", Enter goes to the next" : ""}` : "";
    if (matches.length) view.show(plan.items[matches[0]]);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !matches.length) return;
    const index = matches[next++ % matches.length];
    if (nodes[index].layer) choose(index);
    else view.show(plan.items[index]);
  });
  const button = (text, label, action) => el("button", { "aria-label": label, onclick: action }, text);
  return el(
    "div",
    { class: "tools" },
    search,
    button("+", "zoom in", () => view.middle(1.25)),
    button("−", "zoom out", () => view.middle(0.8)),
    button("whole graph", "show the whole graph", view.fit),
    button("top", "show the first layers", view.home),
    found,
    el("span", {}, `Drag to move, Ctrl and wheel to zoom. Red: share of ${costUnit}.`),
  );
}

/* What stands beside the graph before a layer is chosen. */
function costliest() {
  const order = layers
    .map((layer, index) => index)
    .sort((a, b) => (costOf(layers[b]) || 0) - (costOf(layers[a]) || 0));
  const entry = (index) =>
    el(
      "li",
      {},
      el(
        "a",
        {
          href: "#graph",
          title: layers[index].name,
          onclick: (event) => {
            event.preventDefault();
            choose(index);
          },
        },
        brief(`${index} ${layers[index].op} ${layers[index].name}`, 36),
      ),
      ` ${percent((costOf(layers[index]) || 0) / costSum)}`,
    );
  return [
    el("p", { class: "about" }, "Click a layer to see what it reads, writes and takes."),
    el("h3", {}, `Most ${costUnit}`),
    el("ol", {}, ...order.slice(0, 10).map(entry)),
  ];
}

function layerDetails(index) {
  const layer = layers[index];
  const named = (name) => {
    const t = byName.get(name);
    if (!t) return name;
    const place =
      t.offset_bytes === null ? "caller's buffer" : `at ${count(t.offset_bytes)}${t.region ? ` of ${t.region}` : ""}`;
    const quant = t.scale === null ? "" : `, scale ${short(t.scale)}, zero ${t.zero_point}`;
    return `${name}: ${typeOf(t)}, ${count(t.size_bytes)} bytes ${place}${quant}`;
  };
  const rows = [
    ["operator", layer.op],
    ["kernel", layer.kernel],
    ["multiply-accumulates", count(layer.macs)],
    ["instructions", hasInsns ? count(layer.insns) : `${count(layer.insns_estimate)} (estimated)`],
    ["cycles", hasCycles ? count(layer.cycles) : `${count(layer.cycles_estimate)} (estimated)`],
    ["share", percent((costOf(layer) || 0) / costSum)],
    ...(layer.ms === undefined ? [] : [["ms", digits(layer.ms, 4)]]),
    ...layer.reads.map((name) => ["reads", named(name)]),
    ...layer.writes.map((name) => ["writes", named(name)]),
    ...layer.constants.map((name) => ["constant", `${name}: ${bytes(bytesOf.get(name))}`]),
  ];
  return [
    el("h2", {}, `${index} ${layer.name}`),
    el("dl", {}, ...rows.flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])),
  ];
}
