const MAP = { left: 74, right: 12, top: 26, tall: 380, bottom: 34, wide: 1320, least: 10 };

function storages() {
  const found = new Map();
  for (const t of report.tensors) {
    if (t.offset_bytes === null) continue;
    const known = found.get(t.storage) || { ...t, name: t.storage, seen: [] };
    if (t.name === t.storage) Object.assign(known, t, { seen: known.seen });
    known.seen.push(t);
    found.set(t.storage, known);
  }
  return [...found.values()].filter((block) => block.size_bytes > 0);
}

function drawMemory() {
  const blocks = storages();
  const total = Math.max(1, layers.length, ...blocks.map((b) => b.end_layer));
  const regions = [...new Set(blocks.map((b) => b.region))];
  about(
    "memory",
    "The arena upwards, layers to the right. A block is a tensor while it is needed; where two overlap, " +
      "one is written over a part of the other that nobody reads any more. The dashed line is where the arena ends.",
  );
  for (const region of regions) {
    const own = blocks.filter((b) => b.region === region);
    const limits = (report.regions || []).find((r) => r.name === region);
    const arena = Math.max(
      limits ? limits.arena_bytes : report.arena_bytes,
      ...own.map((b) => b.offset_bytes + b.size_bytes),
      1,
    );
    if (region) section("memory").append(el("h3", {}, region));
    section("memory").append(el("div", { class: "canvas map scroll" }, drawnMap(own, total, arena)));
  }
  if (!blocks.length) section("memory").classList.add("empty");
}

function drawnMap(blocks, total, arena) {
  const column = Math.max(MAP.least, (MAP.wide - MAP.left - MAP.right) / total);
  const wide = MAP.left + MAP.right + column * total;
  const y = (address) => MAP.top + MAP.tall * (1 - address / arena);
  const x = (layer) => MAP.left + column * layer;
  const drawing = svg("svg", {
    viewBox: `0 0 ${wide} ${MAP.top + MAP.tall + MAP.bottom}`,
    style: { minWidth: `${Math.min(wide, 30000)}px` },
  });
  if (wide <= MAP.wide + 1) drawing.style.minWidth = "700px";
  axes(drawing, arena, total, x, y);
  const now = svg("rect", { class: "now", y: MAP.top, width: column, height: MAP.tall, x: -100 });
  const shapes = blocks.map((block, i) => drawnBlock(block, i, x, y));
  drawing.append(...shapes.flat(), now);
  listeners.push((index) => {
    now.setAttribute("x", x(index));
    const names = new Set([...layers[index].reads, ...layers[index].writes]);
    blocks.forEach((b, i) =>
      shapes[i][0].classList.toggle(
        "chosen",
        b.seen.some((t) => names.has(t.name)),
      ),
    );
  });
  return drawing;
}

function drawnBlock(block, index, x, y) {
  const high = block.offset_bytes + block.size_bytes;
  const box = {
    x: x(block.first_layer),
    y: y(high),
    width: x(block.end_layer) - x(block.first_layer),
    height: y(block.offset_bytes) - y(high),
  };
  const views = block.seen.filter((t) => t.name !== block.name).map((t) => `also ${t.name}: ${typeOf(t)}`);
  const life = `layers ${block.first_layer} to ${block.end_layer - 1}`;
  const text = [
    block.name,
    `${block.kind}, ${typeOf(block)}`,
    `${bytes(block.size_bytes)} at ${count(block.offset_bytes)}`,
    life,
    ...views,
  ].join("\n");
  const fillColour = block.kind === "scratch" ? "var(--c7)" : colour(index % (COLOURS - 1));
  const shape = tipped(svg("rect", { class: "block", ...box, fill: fillColour }), text);
  shape.addEventListener("click", () => choose(Math.min(block.first_layer, layers.length - 1)));
  const room = Math.floor((box.width - 6) / 6.4);
  if (box.height < 13 || room < 4) return [shape];
  return [shape, svg("text", { class: "on", x: box.x + 4, y: box.y + 12 }, brief(block.name, room))];
}

function axes(drawing, arena, total, x, y) {
  for (let quarter = 0; quarter <= 4; quarter++) {
    const address = Math.round((arena * quarter) / 4);
    const line = { x1: x(0), x2: x(total), y1: y(address), y2: y(address) };
    drawing.append(
      svg("line", { class: quarter === 4 ? "peak" : "grid", ...line }),
      svg("text", { class: "soft", x: x(0) - 8, y: y(address) + 4, "text-anchor": "end" }, count(address)),
    );
  }
  const step = Math.max(1, Math.ceil(total / 60));
  for (let layer = 0; layer < total; layer += step) {
    const label = svg(
      "text",
      { class: "soft", x: (x(layer) + x(layer + 1)) / 2, y: MAP.top + MAP.tall + 16, "text-anchor": "middle" },
      String(layer),
    );
    drawing.append(layers[layer] ? tipped(label, `${layer} ${layers[layer].op} ${layers[layer].name}`) : label);
  }
  drawing.append(
    svg("text", { class: "soft", x: x(0), y: MAP.top + MAP.tall + 30 }, "layer"),
    svg("text", { class: "soft", x: 4, y: 14 }, "bytes"),
  );
}
