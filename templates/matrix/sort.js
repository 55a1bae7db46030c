/* SPDX-License-Identifier: MIT-0 */
/* A click on a column's head sorts the rows by its first figure, the least first, a second one the most first. */
const heads = [...document.querySelectorAll("thead th")];
const body = document.querySelector("tbody");

function orderOf(row, at) {
  const cell = row.cells[at];
  if (at === 0) return cell.textContent;
  return cell.dataset.order === "" ? Infinity : Number(cell.dataset.order);
}

function sortBy(at) {
  const down = heads[at].getAttribute("aria-sort") === "ascending";
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  heads[at].setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = [...body.rows].map((row) => [orderOf(row, at), row]);
  rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
  body.append(...rows.map(([, row]) => row));
}

heads.forEach((head, at) => {
  head.addEventListener("click", () => sortBy(at));
  head.addEventListener("keydown", (event) => event.key === "Enter" && sortBy(at));
});
