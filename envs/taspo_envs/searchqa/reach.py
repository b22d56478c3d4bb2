"""How many answers a retriever can bring to light at all: the ceiling of an honest agent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from taspo_envs.searchqa.questions import Question
from taspo_envs.searchqa.retrievers import Hit, Retriever
from taspo_envs.searchqa.scoring import answers_stand_in, normalise

SAMPLE = 500  # questions of one data set that are tried at most


def ceiling(questions: Sequence[Question], retriever: Retriever, k: int) -> list[str]:
    """One line per data set: the share of questions whose answer stands in a passage that a fair search shows.

    Fair searches are the question itself and the titles of its gold paragraphs, where the data name them. An answer
    of yes or no stands in no passage: it counts where every gold paragraph is found.
    """
    by_family: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        by_family[question.family].append(question)
    lines = []
    for family, all_of_it in sorted(by_family.items()):
        tried = all_of_it[:: -(-len(all_of_it) // SAMPLE)]
        queries = [[question.text, *(hop.query for hop in question.hops)] for question in tried]
        found = iter(retriever.search([query for some in queries for query in some], k))
        hits = [[hit for _ in some for hit in next(found)] for some in queries]
        reached = sum(map(_reached, tried, hits))
        lines.append(f"{family}: answer within reach of the retriever for {reached} of {len(tried)} questions tried")
    return lines


def _reached(question: Question, hits: Sequence[Hit]) -> bool:
    if {normalise(answer) for answer in question.answers} <= {"yes", "no"}:
        return {hop.passage_id for hop in question.hops} <= {hit.passage.id for hit in hits}
    return any(answers_stand_in(f"{hit.passage.title}\n{hit.passage.text}", question.answers) for hit in hits)
