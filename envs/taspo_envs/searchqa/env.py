"""Search-QA: answer a question by searching passages, one search or one answer a turn."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from taspo_bench.api import DataStamp, Outcome, Progress, Rule, Split, Task, TextEnv
from taspo_bench.errors import InputError
from taspo_envs.searchqa import rules
from taspo_envs.searchqa.actions import parse
from taspo_envs.searchqa.questions import Passage, Question
from taspo_envs.searchqa.reach import ceiling
from taspo_envs.searchqa.remote import HttpRetriever, remote
from taspo_envs.searchqa.retrievers import Retriever
from taspo_envs.searchqa.scoring import exact_match, normalise
from taspo_envs.searchqa.splits import Dataset, load
from taspo_envs.searchqa.store import import_files

TOP_K = 3


class SearchQAEnv(TextEnv):
    """Questions over a corpus of passages.

    An action is ``<search>query</search>`` or ``<answer>text</answer>``, or plainly ``search[query]`` or
    ``answer[text]``. A search shows the best three passages; the first answer ends the episode, and the score is its
    exact match. Raises :class:`~taspo_bench.errors.RunError` from ``step`` only if a remote retriever is dead: a
    search that could not be made is not scored as a failure of the policy.

    Args:
        retriever: ``bm25`` over the data's own passages, or the address of a retrieval server; by default what the
            environment variable ``TASPO_RETRIEVER`` says, else ``bm25``.
    """

    name: ClassVar[str] = "searchqa"
    default_max_steps: ClassVar[int] = 4
    action_templates: ClassVar[tuple[str, ...]] = ("search[{}]", "answer[{}]")
    briefing: ClassVar[str] = (
        "Answer a question. search[query] shows the three passages that fit the query best. answer[text] ends the "
        "episode and counts only if the text is exactly a right answer: give the bare name, number or phrase."
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"updates": 60, "learning_rate": 3e-4},
        "standard": {"learning_rate": 3e-4},
        # The paper's settings of Search-QA where they differ from its others; greedy evaluation. A prompt of 4096
        # tokens and a response of 512 fit.
        "paper": {
            "tasks_per_update": 128,
            "warmup_updates": 15,
            "kl_coef": 0.001,
            "eval_temperature": 0.0,
            "window": 4,
            "context_tokens": 4608,
        },
        "plan": {"prompt_tokens": 4096, "minibatch_turns": 256},
    }

    @classmethod
    def import_data(cls, files: Sequence[Path], destination: Path | None, progress: Progress) -> list[str]:
        """Read questions and passages and build their index; it is kept where TASPO_CACHE says."""
        if destination is not None:
            raise InputError(f"--to {destination}: Search-QA keeps its index in the cache; set TASPO_CACHE instead")
        return import_files(files, lambda done: progress("passages", done, None))

    def __init__(
        self,
        split: str = "train",
        data: str = "embedded",
        max_steps: int | None = None,
        render_mode: str | None = None,
        retriever: str | None = None,
    ) -> None:
        self.dataset: Dataset = load(data)
        name = retriever or os.environ.get("TASPO_RETRIEVER") or "bm25"
        self.retriever: Retriever = self.dataset.open_retriever() if name == "bm25" else remote(name)
        self._question: Question | None = None
        self._found: dict[str, str] = {}
        self._searched: set[str] = set()
        self._answer: str | None = None
        super().__init__(split, data, max_steps, render_mode)

    def splits(self) -> dict[str, Split]:
        return self.dataset.splits

    def task(self, task_id: str) -> Task:
        question = self.dataset.questions.get(task_id)
        if question is None:
            raise InputError(f"searchqa has no task {task_id!r} in this data: take an id from splits()")
        return Task(question.id, question.family)

    def data_stamp(self) -> DataStamp:
        """The stamp of questions and passages; with a server's passages it is another one."""
        stamp = self.dataset.stamp
        if not isinstance(self.retriever, HttpRetriever):
            return stamp
        digest = hashlib.sha256(f"{stamp.sha256} with a retrieval server".encode()).hexdigest()
        return replace(stamp, version=f"{stamp.version}, passages of a retrieval server", sha256=digest)

    def start(self, task_id: str) -> str:
        self.task(task_id)
        self._question = self.dataset.questions[task_id]
        self._found, self._searched, self._answer = {}, set(), None
        return f"Question: {self._question.text}\nUse search[..] or answer[..], {self.max_steps} turns."

    @property
    def question(self) -> Question:
        if self._question is None:
            raise InputError("no question yet: call reset first")
        return self._question

    def act(self, action: str) -> Outcome:
        said = parse(action)
        if said.kind == "invalid":
            return Outcome(f"Invalid: {said.text}. Write search[..] or answer[..].", is_action_valid=False)
        if said.kind == "answer":
            self._answer = said.text
            return Outcome(f"Answered: {said.text}")
        passages = [hit.passage for hit in self.retriever.search([said.text], TOP_K)[0]]
        self._searched.add(normalise(said.text))
        self._found.update((passage.id, passage.shown()) for passage in passages)
        return Outcome(shown(passages))

    @property
    def instruction(self) -> str:
        return self.question.text

    @property
    def won(self) -> bool:
        return self._answer is not None and exact_match(self._answer, self.question.answers)

    @property
    def finished(self) -> bool:
        return self._answer is not None

    @property
    def score(self) -> float:
        return float(self.won)

    @property
    def admissible_actions(self) -> None:
        return None

    @property
    def state_key(self) -> str:
        """The question, the passages found so far (in the order of their ids), and the answer given."""
        lines = [f"question {self.question.text}", *(rules.found_line(name) for name in sorted(self._found))]
        if self._answer is not None:
            lines.append(f"answered {normalise(self._answer)}")
        return "\n".join(lines)

    def save(self) -> dict[str, Any]:
        return {"found": self._found, "searched": sorted(self._searched), "answer": self._answer}

    def load(self, state: dict[str, Any]) -> None:
        self._found = dict(state["found"])
        self._searched = set(state["searched"])
        self._answer = state["answer"]

    def solve(self) -> list[str]:
        """The reference searches whose passages have not been found, then the answer; [] if they no longer fit."""
        if self.finished:
            return []
        hops = self.question.hops[: self.max_steps - 1]
        open_hops = [hop for hop in hops if hop.passage_id not in self._found]
        queries = [hop.query for hop in open_hops if normalise(hop.query) not in self._searched]
        plan = [f"search[{query}]" for query in queries] + [f"answer[{self._best_answer()}]"]
        return plan if len(plan) <= self.max_steps - self.steps else []

    @classmethod
    def foresee(cls, envs: Sequence[TextEnv], actions: Sequence[str]) -> None:
        """Send all searches that a remote retriever is about to be asked for at once; it remembers the results."""
        queries: dict[HttpRetriever, list[str]] = {}
        for env, action in zip(envs, actions, strict=True):
            said = parse(action)
            if said.kind == "search" and isinstance(env, SearchQAEnv) and isinstance(env.retriever, HttpRetriever):
                queries.setdefault(env.retriever, []).append(said.text)
        for retriever, asked in queries.items():
            retriever.search(asked, TOP_K)

    def _best_answer(self) -> str:
        """A gold answer that scores (one that is empty when normalised does not)."""
        answers = self.question.answers
        return next((answer for answer in answers if exact_match(answer, answers)), answers[0])

    def check(self) -> list[str]:
        lines = [*super().check(), *self.dataset.notes]
        for split in self.dataset.splits.values():
            if split.kind != "train":
                questions = [self.dataset.questions[name] for name in split.task_ids]
                lines += [f"{split.name}, {line}" for line in ceiling(questions, self.retriever, TOP_K)]
        return lines

    def rules(self, actions: Sequence[str]) -> list[Rule]:
        if self.task_id is None:
            raise InputError("rules() needs a task: call reset first")
        before = self.snapshot()
        observations = [self.reset(options={"task_id": self.task_id})[0]]
        found = [dict(self._found)]
        for action in actions:
            observations.append(self.step(action)[0])
            found.append(dict(self._found))
        self.restore(before)
        return rules.read_off(self.question.text, actions, observations, found)


def shown(passages: Sequence[Passage]) -> str:
    """The observation of a search: a numbered passage a line."""
    if not passages:
        return "No passage found."
    return "\n".join(f"{number}. {passage.shown()}" for number, passage in enumerate(passages, 1))
