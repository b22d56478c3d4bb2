"""report.html: one self-contained page with the tables, the plots, and an episode viewer. Needs no network."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from taspo_bench.config import WARM_START
from taspo_bench.episode import Episode
from taspo_bench.evaluation.episode_sample import Sample
from taspo_bench.evaluation.page_text import cut, script_json
from taspo_bench.evaluation.results import Run
from taspo_bench.evaluation.summary import Aggregate, Summary
from taspo_bench.evaluation.table import Table, percent_gain, share

CAPTIONS = {
    "generalization": "Success on seen and unseen tasks with 95 % intervals.",
    "gain": "Gain over the baseline in percent of its success, with 95 % intervals.",
    "profiles": (
        "Performance profiles: share of runs x task families whose success is above τ; bands: 95 % stratified "
        "bootstrap. A curve further up and right is better."
    ),
    "learning_curves": (
        "Training success by update: mean over seeds; bands: 95 % bootstrap over seeds. Runs that failed or did not "
        "finish are left out; the legend counts them."
    ),
    "wall_clock": "Mean wall-clock time of an update, by phase.",
    "credit": (
        "Credit along a won and a lost training trajectory: an action above 1 takes a larger share of the outcome "
        "advantage A, one below 1 a smaller share."
    ),
}


def render_report(run: Run, summary: Summary, tables: Sequence[Table], plots: Sequence[str], sample: Sample) -> str:
    """The page as text. ``plots`` names the SVG files in the run's plots/ to set in."""
    environment = Environment(
        loader=PackageLoader("taspo_bench.evaluation", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    named = {table.name: table for table in tables}
    page = environment.get_template("report.html.jinja")
    return page.render(
        summary=summary,
        config=run.config,
        config_text=json.dumps(run.config, indent=2, ensure_ascii=False, sort_keys=True),
        headline=_headline(summary),
        broken=[cell for cell in summary.cells if cell.errors],
        tables=named,
        families=[table for name, table in named.items() if name.startswith("families ")],
        plots={name: _inline_svg(run, name) for name in plots},
        captions=CAPTIONS,
        stamps=_stamps(run),
        resolved=_resolved(run),
        notes=sorted({str(cell.config["note"]) for cell in run.cells if cell.config.get("note")}),
        episodes=script_json([_view(method, episode) for method, episode in sample.episodes]),
        shown=len(sample.episodes),
        evaluated=sample.evaluated,
    )


def _headline(summary: Summary) -> list[dict[str, str]]:
    """One line per method over all benchmarks: unseen tasks where there are any."""
    kinds = {row.kind for row in summary.aggregates}
    kind = "unseen" if "unseen" in kinds else next(iter(sorted(kinds)), "")
    rows = [row for row in summary.aggregates if row.kind == kind]
    return [_card(row) for row in sorted(rows, key=lambda row: -row.mean.value)]


def _card(row: Aggregate) -> dict[str, str]:
    value, _, interval = share(row.mean).partition(" ")
    gain, _, gain_interval = percent_gain(row.relative).partition(" ") if row.relative else ("", "", "")
    return {
        "method": row.method,
        "kind": row.kind,
        "value": value,
        "interval": interval,
        "gain": gain,
        "gain_interval": gain_interval,
        "top": "yes" if row.best else "",
        "tied": "yes" if row.tied and not row.best else "",
    }


def _stamps(run: Run) -> list[dict[str, Any]]:
    """Data stamp and splits of each environment, from the first of its cells that knows them."""
    found: dict[str, dict[str, Any]] = {}
    for cell in run.cells:
        if cell.data_stamp and cell.env not in found:
            found[cell.env] = {"env": cell.env, **cell.data_stamp, "splits": cell.config.get("splits") or {}}
    return list(found.values())


def _resolved(run: Run) -> dict[str, str]:
    """The resolved settings of each environment, from its first training cell that has them."""
    found: dict[str, str] = {}
    for cell in run.cells:
        if cell.config and cell.env not in found and cell.method != WARM_START:
            shown = {key: value for key, value in cell.config.items() if key not in ("data_stamp", "splits")}
            found[cell.env] = json.dumps(shown, indent=2, ensure_ascii=False, sort_keys=True)
    return found


def _view(method: str, episode: Episode) -> dict[str, Any]:
    """What the viewer shows of an episode; long texts are cut, and say so."""
    texts = episode.guidance.texts if episode.guidance else []
    scope = episode.guidance.scope if episode.guidance else ""
    weights = episode.weights if len(episode.weights) == len(episode.turns) else []
    credits = episode.credit if len(episode.credit) == len(episode.turns) else []
    return {
        "method": method,
        "env": episode.env,
        "split": episode.split,
        "family": episode.family,
        "task": episode.task_id,
        "seed": episode.seed,
        "outcome": "error" if episode.error else "won" if episode.won else "lost",
        "truncated": episode.truncated,
        "score": episode.score,
        "error": episode.error,
        "advantage": episode.advantage,
        "scope": scope,
        "guidance": next((cut(text) for text in texts if text), "") if scope == "trajectory" else "",
        "reason": episode.guidance.reason if episode.guidance else "",
        "items": [_item(item) for item in (episode.guidance.items if episode.guidance else [])[:8]],
        "final": cut(episode.final_observation),
        "turns": [
            {
                "observation": cut(turn.observation),
                "response": cut(turn.response) if turn.response.strip() != turn.action.strip() else "",
                "action": cut(turn.action),
                "valid": turn.is_action_valid,
                "reward": turn.reward,
                "weight": weights[step] if weights else None,
                "credit": credits[step] if credits else None,
                "guidance": cut(texts[step] or "") if scope == "turn" and step < len(texts) else "",
            }
            for step, turn in enumerate(episode.turns)
        ],
    }


def _item(item: dict[str, Any]) -> dict[str, str]:
    return {key: cut(str(item[key])) for key in ("kind", "statement", "quote") if item.get(key)}


def _inline_svg(run: Run, name: str) -> Markup:
    """A plot as SVG for the page: its ids made its own, its width as drawn and half as much again, or the page's."""
    text = (run.path / "plots" / f"{name}.svg").read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, count=1, flags=re.DOTALL)
    text = re.sub(r'\b(id="|url\(#|href="#)', rf"\g<1>{name}-", text)
    drawn = re.search(r'width="([\d.]+)pt" height="[\d.]+pt"', text)
    if drawn:
        width = round(1.55 * float(drawn[1]))
        size = f'role="img" aria-label="{name}" style="max-width: {width}px; min-width: {min(width, 640)}px"'
        text = text.replace(drawn[0], size, 1)
    return Markup(text)
