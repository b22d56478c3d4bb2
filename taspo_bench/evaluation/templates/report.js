"use strict";
(() => {
  const episodes = JSON.parse(document.getElementById("data").textContent);
  const FILTERS = { method: "Method", env: "Benchmark", split: "Split", family: "Family", outcome: "Outcome" };
  const form = document.getElementById("filters");
  const list = document.getElementById("list");
  const shown = document.getElementById("episode");
  const selects = {};

  // Every text of an episode goes through textContent: none of it is ever read as markup.
  function element(tag, className, text) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function signed(value, digits = 2) {
    return (value >= 0 ? "+" : "−") + Math.abs(value).toFixed(digits);
  }

  for (const [key, title] of Object.entries(FILTERS)) {
    const label = element("label", "", title);
    const select = element("select");
    select.id = "filter-" + key;
    select.append(new Option("all", ""));
    for (const value of [...new Set(episodes.map((episode) => episode[key]))].sort()) {
      select.append(new Option(value, "=" + value));
    }
    select.addEventListener("change", refresh);
    selects[key] = select;
    label.append(select);
    form.append(label);
  }
  const reset = element("button", "", "Show all");
  reset.type = "button";
  reset.addEventListener("click", () => {
    for (const select of Object.values(selects)) select.value = "";
    refresh();
  });
  form.append(reset);
  form.addEventListener("submit", (event) => event.preventDefault());

  function refresh() {
    const chosen = episodes.filter((episode) =>
      Object.entries(selects).every(([key, select]) => !select.value || select.value === "=" + episode[key]));
    document.getElementById("count").textContent = chosen.length + " of " + episodes.length + " episodes";
    list.replaceChildren(...chosen.map(entry));
    if (chosen.length) open(chosen[0], list.querySelector("button"));
    else shown.replaceChildren(element("p", "", "No embedded episode matches these filters."));
  }

  function entry(episode) {
    const item = element("li");
    const button = element("button");
    button.type = "button";
    button.append(
      element("span", "badge " + episode.outcome, episode.outcome),
      element("b", "", episode.method + ", " + episode.env + ", " + episode.split),
      element("small", "", episode.task + " · " + episode.turns.length + " turns"));
    button.addEventListener("click", () => open(episode, button));
    item.append(button);
    return item;
  }

  // Arrow keys walk through the list as Tab would, and open what they reach.
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const buttons = [...list.querySelectorAll("button")];
    const next = buttons[buttons.indexOf(document.activeElement) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
    next.click();
  });

  function open(episode, button) {
    for (const other of list.querySelectorAll("[aria-current]")) other.removeAttribute("aria-current");
    button.setAttribute("aria-current", "true");
    const head = element("h3");
    head.append(element("span", "badge " + episode.outcome, episode.outcome), episode.task);
    shown.replaceChildren(head, element("p", "meta", facts(episode)));
    if (episode.error) shown.append(element("p", "invalid", "error: " + episode.error));
    if (episode.guidance) shown.append(guidance("Guidance, the same for every turn", episode.guidance));
    if (episode.items.length) shown.append(evidence(episode.items));
    if (episode.reason) shown.append(element("p", "meta", "No guidance: " + episode.reason));
    const turns = element("ol", "turns");
    const reach = Math.max(0.05, ...episode.turns.map((turn) => Math.abs((turn.weight ?? 1) - 1)));
    episode.turns.forEach((turn, step) => turns.append(turnEntry(turn, step, reach)));
    if (episode.final) {
      const last = element("li");
      last.append(element("span", "step", "end"), element("p", "observation", episode.final));
      turns.append(last);
    }
    shown.append(turns);
  }

  function facts(episode) {
    const parts = [episode.method, episode.env, episode.split, "family " + episode.family, "seed " + episode.seed,
      "score " + episode.score.toFixed(2)];
    if (episode.truncated) parts.push("stopped at the step limit");
    if (episode.advantage !== null) parts.push("advantage A " + signed(episode.advantage));
    return parts.join(" · ");
  }

  function guidance(title, text) {
    const box = element("div", "guidance");
    box.append(element("b", "", title), text);
    return box;
  }

  function evidence(items) {
    const box = element("details");
    box.append(element("summary", "", "Evidence behind the guidance (" + items.length + ")"));
    for (const item of items) {
      const quote = item.quote ? "\nquote: “" + item.quote + "”" : "";
      box.append(guidance(item.kind || "item", (item.statement || "") + quote));
    }
    return box;
  }

  function turnEntry(turn, step, reach) {
    const entry = element("li");
    const body = element("div");
    body.append(element("p", "observation", turn.observation));
    if (turn.guidance) body.append(guidance("Guidance at this turn", turn.guidance));
    if (turn.response) body.append(element("p", "response", turn.response));
    body.append(element("span", "action", turn.action || "(no action)"));
    if (!turn.valid) body.append(element("span", "invalid", "did nothing here"));
    entry.append(element("span", "step", String(step + 1)), body);
    if (turn.weight !== null || turn.credit !== null) entry.append(credit(turn, reach));
    return entry;
  }

  function credit(turn, reach) {
    const box = element("div", "credit");
    if (turn.weight !== null) {
      box.append("weight " + turn.weight.toFixed(3));
      const bar = element("div", "bar");
      const fill = element("i", turn.weight >= 1 ? "more" : "less");
      fill.style.width = (50 * Math.abs(turn.weight - 1)) / reach + "%";
      bar.append(fill);
      bar.setAttribute("aria-hidden", "true");
      box.append(bar);
    }
    if (turn.credit !== null) box.append(element("div", "", "credit " + signed(turn.credit, 3)));
    return box;
  }

  refresh();
})();
