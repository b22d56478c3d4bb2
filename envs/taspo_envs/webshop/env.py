"""WebShop as a text environment: search, open a product, choose options, buy; the score is the purchase's reward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from taspo_bench.api import DataStamp, Outcome, Progress, Rule, Split, Task, TextEnv, split_by_name
from taspo_bench.errors import InputError, SplitError, unknown_name
from taspo_envs.webshop import solver
from taspo_envs.webshop.advice import shopping_rules
from taspo_envs.webshop.choices import FULL
from taspo_envs.webshop.fetch import fetch
from taspo_envs.webshop.locate import import_files, store_of
from taspo_envs.webshop.pages import Kind
from taspo_envs.webshop.session import Session, parse_action
from taspo_envs.webshop.splits import PROTOCOLS, category_splits, official_splits
from taspo_envs.webshop.store import GOAL_KINDS, Store

OBSERVATION_MODES = ("text", "text_rich")


@cache
def _splits(store: Store, goals: str, protocol: str) -> dict[str, Split]:
    if protocol == "category":
        return split_by_name(category_splits(store.splits(goals)))
    return split_by_name(official_splits(store.goal_ids(goals), protocol))


class WebShopEnv(TextEnv):
    """Scores, pages and searches of princeton-nlp/WebShop, without its server (arXiv 2207.01206).

    Args:
        observation_mode: ``text`` (pieces of a page joined by ``[SEP]``) or ``text_rich`` (lines, buttons marked).
        goals: ``human`` or ``synthetic``; by default the ones that papers use on a catalogue of this size.
        protocol: ``category`` (ours: train, valid_seen, valid_unseen), ``official`` (train, dev, test) or
            ``verl-agent`` (train, test).

    The other arguments are those of :class:`~taspo_bench.api.TextEnv`.
    """

    name: ClassVar[str] = "webshop"
    default_max_steps: ClassVar[int] = 15
    action_templates: ClassVar[tuple[str, ...]] = ("search[{}]",)
    strict: ClassVar[bool] = False
    briefing: ClassVar[str] = (
        "Buy what the instruction asks for in an online shop. search[words], on the search page only, finds "
        "products; click[button] follows a link or chooses an option of the product that is open. click[buy now] "
        "ends the episode; its score is how well the product, the chosen options and the price fit the instruction."
    )
    markers: ClassVar[tuple[str, ...]] = ("[SEP]",)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        # pages are long: few turns and tasks where minutes count
        "warm_start": {"clean_weight": 1.0, "target": 0.15},
        "quick": {"updates": 36, "tasks_per_update": 4, "max_turns": 8, "learning_rate": 3e-4},
        "standard": {"max_turns": 10},
        "paper": {"context_tokens": 4608},  # a prompt of 4096 tokens and a response of 512
        "plan": {"prompt_tokens": 4096, "minibatch_turns": 64},
    }

    @classmethod
    def import_data(cls, files: Sequence[Path], destination: Path | None, progress: Progress) -> list[str]:
        """Clean up upstream's raw files and build the catalogue with its index."""
        return import_files(list(files), destination, lambda what, done: progress(what, done, None)).report()

    @classmethod
    def fetch_data(cls, destination: Path | None, url: str | None, progress: Progress) -> list[str]:
        """Download upstream's 1,000 products and build the catalogue; ``url`` ``all`` stands for all products."""
        return fetch(url or "small", destination, lambda what, done: progress(what, done, None)).report()

    def __init__(
        self,
        split: str = "train",
        data: str = "embedded",
        max_steps: int | None = None,
        render_mode: str | None = None,
        observation_mode: str = "text",
        goals: str | None = None,
        protocol: str = "category",
    ) -> None:
        if observation_mode not in OBSERVATION_MODES:
            raise unknown_name("observation_mode", observation_mode, OBSERVATION_MODES)
        if protocol not in PROTOCOLS:
            raise unknown_name("protocol", protocol, PROTOCOLS)
        if goals is not None and goals not in GOAL_KINDS:
            raise unknown_name("goals", goals, GOAL_KINDS)
        self.store = store_of(data)
        self.observation_mode = observation_mode
        self.goals = goals or self.store.goal_kind
        self.protocol = protocol
        self.session: Session | None = None
        super().__init__(split, data, max_steps, render_mode)

    # --- tasks ------------------------------------------------------------------------------------

    def splits(self) -> dict[str, Split]:
        return _splits(self.store, self.goals, self.protocol)

    def task(self, task_id: str) -> Task:
        """The goal of that id; its family is the category of its product."""
        goal = self.store.goal(task_id)
        return Task(task_id, self.store.product(goal.asin).category)

    def data_stamp(self) -> DataStamp:
        manifest = self.store.manifest
        version = (
            f"{manifest['products']} products, {self.goals} goals, {self.protocol} splits, nouns {manifest['nouns']}"
        )
        return DataStamp(self.data, version, manifest["sha256"])

    def check(self) -> list[str]:
        """The splits' promises, and that held-out queries and products are in no training goal."""
        facts = super().check()
        if self.protocol != "category":
            return facts
        built = self.store.splits(self.goals)
        for split, what in (("valid_seen", "products"), ("valid_unseen", "queries")):
            groups = [self._group(name, what) for name in ("train", split)]
            if shared := sorted(groups[0] & groups[1]):
                raise SplitError(
                    f"split {split!r} shares {what} with training, first {shared[0]!r}: build the catalogue again"
                )
            facts.append(f"{split}: none of its {len(groups[1])} {what} is in training")
        left_out = len(built["beyond_reach"])
        facts.append(f"{left_out} goals are in no split: no purchase of their product earns full reward")
        return [*facts, f"held-out queries: {', '.join(built['held_out'])}"]

    def _group(self, split: str, what: str) -> set[str]:
        asins = {self.store.goal(goal_id).asin for goal_id in self.splits()[split].task_ids}
        return asins if what == "products" else {self.store.product(asin).query for asin in asins}

    # --- play -------------------------------------------------------------------------------------

    def start(self, task_id: str) -> str:
        self.session = Session(self.store, self.store.goal(task_id), task_id, strict=self.strict)
        return self._observe()

    def act(self, action: str) -> Outcome:
        """One action; an unusable one shows the same page again, as WebShop does."""
        is_valid = self._here.act(action)
        return Outcome(self._observe(), is_valid)

    @property
    def _here(self) -> Session:
        if self.session is None:
            raise InputError("the shop is closed before reset(): call reset first")
        return self.session

    def _observe(self) -> str:
        return self._here.text() if self.observation_mode == "text" else self._here.rich_text()

    @property
    def instruction(self) -> str:
        return self._here.goal.instruction

    @property
    def won(self) -> bool:
        return self.score >= FULL

    @property
    def finished(self) -> bool:
        return self._here.purchase is not None

    @property
    def score(self) -> float:
        """Reward of the purchase; 0 before it."""
        bought = self._here.purchase
        return bought.reward.reward if bought else 0.0

    @property
    def admissible_actions(self) -> list[str]:
        """The clicks of the page in its own order, less the few texts whose brackets WebShop reads otherwise."""
        clicks = {text: f"click[{text}]" for text in self._here.clickables if text != "search"}
        return [action for text, action in clicks.items() if parse_action(action) == ("click", text)]

    @property
    def state_key(self) -> str:
        """Page, query, page number, product, and each option group as chosen or not, a line each."""
        here = self._here
        lines = [f"page {here.view.lower()}"]
        if here.keywords is not None:
            lines += [f"query {' '.join(here.keywords)}", f"results page {here.page}"]
        if here.view == "results":
            lines += [f"lists {text}" for text, piece in here.clickables.items() if piece.kind is Kind.LINK]
        if here.asin is not None:
            lines.append(f"item {here.asin}")
            lines += [f"chosen {name}: {value}" for name, value in sorted(here.options.items())]
            groups = self.store.product(here.asin).options if here.view != "done" else {}
            lines += [f"unchosen {name}" for name in sorted(groups) if name not in here.options]
        return "\n".join(lines)

    def save(self) -> dict[str, Any]:
        return self._here.save()

    def load(self, state: dict[str, Any]) -> None:
        self._here.load(state)

    def solve(self) -> list[str]:
        return solver.solve(self._here)

    def rules(self, actions: Sequence[str]) -> list[Rule]:
        """Advice of a successful purchase, stated over pages that the target may be on too."""
        return shopping_rules(self._here, self.observation_mode, actions)


class WebShopStrictEnv(WebShopEnv):
    """WebShop whose options must match as whole values: x-large is not large, and dark blue is not light blue."""

    name: ClassVar[str] = "webshopstrict"
    in_suite: ClassVar[bool] = False
    strict: ClassVar[bool] = True
