"use strict";
(() => {
  const form = document.getElementById("filters");
  if (!form) return;
  const rows = [...document.querySelectorAll("table.board tbody tr")];
  const field = (name) => document.getElementById("filter-" + name);

  function refresh() {
    const words = field("text").value.toLowerCase().split(/\s+/).filter(Boolean);
    const model = field("model").value;
    const budget = field("budget").value;
    const references = field("references").checked;
    const hidden = new Set();
    let shown = 0;
    for (const row of rows) {
      const data = row.dataset;
      const fits = words.every((word) => data.text.includes(word))
        && (!model || model === "=" + data.model)
        && (!budget || (data.budget !== "" && Number(data.budget) <= Number(budget)))
        && (references || data.ranked === "yes");
      row.hidden = !fits;
      if (fits) shown += 1;
      else hidden.add(row.closest("section").id + " " + data.key);
    }
    for (const point of document.querySelectorAll(".point")) {
      point.classList.toggle("out", hidden.has(point.closest("section").id + " " + point.dataset.key));
    }
    document.getElementById("count").textContent = shown + " of " + rows.length + " rows";
  }

  // Rows without a value stay below those that have one, whichever way the column is sorted.
  function compare(one, other, column, down) {
    const [a, b] = [one, other].map((row) => row.children[column].dataset.value);
    if (a === "" || b === "") return (a === "") - (b === "");
    const numbers = Number(a) - Number(b);
    const order = Number.isNaN(numbers) ? a.localeCompare(b) : numbers;
    return down ? -order : order;
  }

  function sort(heading) {
    const table = heading.closest("table");
    const column = [...heading.parentNode.children].indexOf(heading);
    const before = heading.getAttribute("aria-sort");
    const figure = heading.classList.contains("figure") && column > 0;
    const down = before ? before === "ascending" : figure;
    for (const other of heading.parentNode.children) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    body.append(...[...body.rows].sort((one, other) => compare(one, other, column, down)));
  }

  for (const button of document.querySelectorAll("button.sort")) {
    button.addEventListener("click", () => sort(button.closest("th")));
  }
  form.addEventListener("input", refresh);
  form.addEventListener("change", refresh);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(refresh));
  refresh();
})();
