function flashParts(of) {
  const measured = of.text_bytes !== null && of.text_bytes !== undefined;
  const code = measured ? of.text_bytes : of.text_bytes_estimate;
  const parts = [];
  if (code) parts.push({ label: measured ? "code" : "code (estimated)", value: code });
  const roles = new Map();
  for (const c of of.constants) roles.set(c.role || "other", (roles.get(c.role || "other") || 0) + c.size_bytes);
  for (const [role, value] of [...roles].sort((a, b) => b[1] - a[1])) parts.push({ label: role, value });
  const known = [...roles.values()].reduce((s, v) => s + v, 0);
  const rest = (of.rodata_bytes ?? 0) - known;
  if (rest > 0) parts.push({ label: "other read-only data", value: rest });
  if (of.data_bytes) parts.push({ label: "initialised data", value: of.data_bytes });
  return parts.map((part, i) => ({ ...part, colour: colour(i) }));
}

function drawFlash() {
  const parts = flashParts(report);
  if (!parts.length) return section("flash").classList.add("empty");
  const users = new Map();
  layers.forEach((layer, i) => layer.constants.forEach((name) => users.set(name, [...(users.get(name) || []), i])));
  section("flash").append(stackedBar(parts, true), legend(parts, " bytes"));
  const columns = [
    { title: "constant", value: (row) => row.name, wide: true },
    { title: "role", value: (row) => row.role },
    { title: "type", value: (row) => `${row.dtype} ${row.shape.join("×")}` },
    { title: "bytes", value: (row) => row.size_bytes, text: (row) => count(row.size_bytes), n: true },
    { title: "layers", value: (row) => (users.get(row.name) || []).join(", "), wide: true },
  ];
  const rows = [...report.constants].sort((a, b) => b.size_bytes - a.size_bytes);
  section("flash").append(
    el("details", {}, el("summary", {}, `${rows.length} constants, the largest first`), table(columns, rows).node),
  );
}
