function flashBytes(of) {
  const code = of.text_bytes ?? of.text_bytes_estimate ?? null;
  if (code === null) return null;
  return code + Math.max(of.rodata_bytes ?? 0, of.weights_bytes) + (of.data_bytes ?? 0);
}

function card(label, value, note) {
  return el("div", { class: "card" }, el("span", {}, label), el("b", {}, value), el("small", {}, note || ""));
}

function memoryNote() {
  const bound = report.arena_lower_bound_bytes;
  if (report.regions) return report.regions.map((r) => `${r.name} ${count(r.arena_bytes)}`).join(", ");
  return bound === report.arena_bytes
    ? "proven minimum"
    : `lower bound ${count(bound)}`;
}

function cards() {
  const measured = report.text_bytes !== null && report.text_bytes !== undefined;
  const flash = flashBytes(report);
  const stack = report.stack_bound_bytes ?? report.stack_bytes ?? report.stack_bytes_estimate;
  const stackNote = report.stack_bound_bytes
    ? "worst case"
    : report.stack_bytes
      ? "of one inference"
      : stack
        ? "estimated"
        : "not measured";
  const macs = count(report.macs);
  const shown = [
    card("Arena (RAM)", count(report.arena_bytes), memoryNote()),
    card("Stack", count(stack), stackNote),
    card(
      "Flash",
      count(flash),
      measured ? "code and constants" : flash ? "code is estimated" : "code was not measured",
    ),
    hasCycles
      ? card("Time", `${digits(report.ms, 3)} ms`, `${report.chip.name} at ${report.chip.clock_mhz} MHz, modeled`)
      : null,
    hasCycles ? card("Cycles", count(report.cycles), trusted(report.chip)) : null,
    report.uj !== undefined ? card("Energy", `${digits(report.uj, 2)} µJ`, energyNote()) : null,
    hasInsns
      ? card("Instructions", count(report.insns), "counted, one inference")
      : card("Instructions", count(report.insns_estimate), "estimated, one inference"),
    card("Multiply-accumulates", macs, `${layers.length} layers`),
  ].filter(Boolean);
  /* At most half of them in a line: seven are four and three, not six and one. */
  const most = Math.ceil(shown.length / 2);
  const least = `max(170px, (100% - ${12 * (most - 1)}px) / ${most})`;
  fill(section("cards"), { style: { gridTemplateColumns: `repeat(auto-fit, minmax(${least}, 1fr))` } }, shown);
}

function energyNote() {
  const battery = report.battery;
  const each = `${report.chip.energy.pj_per_cycle} pJ a cycle, modeled`;
  if (!battery) return each;
  return `${each}; ${count(battery.days)} days of ${battery.capacity_mah} mAh at ${count(battery.per_hour)} an hour`;
}

function trusted(chip) {
  return chip.error_percent ? `within ${chip.error_percent} % of silicon` : "not checked against silicon";
}

function heading() {
  const run = report.run_cpu && report.run_cpu !== report.cpu ? `, run on ${report.run_cpu}` : "";
  section("title").textContent = report.model;
  section("subtitle").textContent =
    `${report.board}, ${report.cpu}${run} · ${report.options || "default options"} · ${report.model_hash || ""}`;
  section("footer").textContent = `glowc ${report.glowc || ""}`;
  section("notes").append(...page.notes.map((note) => el("li", {}, note)));
  for (const part of document.querySelectorAll("main > section")) {
    if (part.classList.contains("empty")) continue;
    section("nav").append(el("a", { href: `#${part.id}` }, part.querySelector("h2").textContent));
  }
}
