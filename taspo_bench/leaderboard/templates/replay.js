"use strict";
(() => {
  const episodes = JSON.parse(document.getElementById("data").textContent);
  if (!episodes.length) return;
  const part = (id) => document.getElementById(id);
  let episode = episodes[0];
  let step = 0;
  part("replays").hidden = false;

  // Every text of an episode goes through textContent: none of it is ever read as markup.
  function show() {
    const turn = episode.steps[step];
    const last = step + 1 === episode.steps.length;
    part("step-name").textContent = "step " + (step + 1) + " of " + episode.steps.length;
    part("step-observation").textContent = turn.observation;
    part("step-response").textContent = turn.response;
    part("step-response").hidden = !turn.response || turn.response.trim() === turn.action.trim();
    part("step-action").textContent = turn.action || "(no action)";
    part("step-invalid").hidden = turn.valid;
    part("step-after").textContent = last ? episode.final : episode.steps[step + 1].observation;
    part("step-slider").value = step + 1;
    for (const id of ["step-first", "step-back"]) part(id).setAttribute("aria-disabled", String(step === 0));
    for (const id of ["step-next", "step-last"]) part(id).setAttribute("aria-disabled", String(last));
  }

  function go(to) {
    step = Math.min(Math.max(to, 0), episode.steps.length - 1);
    show();
  }

  function open(chosen, button) {
    episode = chosen;
    for (const other of part("episode-list").querySelectorAll("[aria-current]")) other.removeAttribute("aria-current");
    button.setAttribute("aria-current", "true");
    part("episode-title").replaceChildren(badge(episode), episode.task_id);
    part("episode-facts").textContent = [episode.env, episode.split, "family " + episode.family, "seed " + episode.seed,
      "score " + episode.score.toFixed(2)].join(" · ");
    part("step-slider").max = episode.steps.length;
    go(0);
  }

  function badge(of) {
    const node = document.createElement("span");
    node.className = "badge " + (of.won ? "won" : "lost");
    node.textContent = of.won ? "won" : "lost";
    return node;
  }

  function entry(of) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    const name = document.createElement("b");
    const more = document.createElement("small");
    button.type = "button";
    name.textContent = of.env + ", " + of.split;
    more.textContent = of.family + " · " + of.steps.length + " steps · seed " + of.seed;
    button.append(badge(of), name, more);
    button.addEventListener("click", () => open(of, button));
    item.append(button);
    return item;
  }

  function refresh() {
    const wanted = part("episode-filter").value;
    const chosen = episodes.filter((of) => !wanted || (wanted === "won") === of.won);
    part("episode-list").replaceChildren(...chosen.map(entry));
    part("episode-count").textContent = chosen.length + " of " + episodes.length + " episodes";
    part("episode").hidden = !chosen.length;
    if (chosen.length) open(chosen[0], part("episode-list").querySelector("button"));
  }

  // Arrow keys walk through the list as Tab would, and open what they reach.
  part("episode-list").addEventListener("keydown", (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const buttons = [...part("episode-list").querySelectorAll("button")];
    const next = move && buttons[buttons.indexOf(document.activeElement) + move];
    if (!next) return;
    event.preventDefault();
    next.focus();
    next.click();
  });
  part("episode-filter").addEventListener("change", refresh);
  part("step-first").addEventListener("click", () => go(0));
  part("step-back").addEventListener("click", () => go(step - 1));
  part("step-next").addEventListener("click", () => go(step + 1));
  part("step-last").addEventListener("click", () => go(episode.steps.length - 1));
  part("step-slider").addEventListener("input", (event) => go(Number(event.target.value) - 1));
  refresh();
})();
