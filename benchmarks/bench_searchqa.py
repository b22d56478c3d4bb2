"""Search-QA's retriever, measured: recall and speed beside rank-bm25, and an index of a million passages.

Run as ``python benchmarks/bench_searchqa.py [--million]``. The first part reads HotpotQA questions with their own
paragraphs from ``$TASPO_DATA`` (default ``../shared/data``).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from taspo_envs.searchqa.bm25 import Bm25Index, terms
from taspo_envs.searchqa.questions import Passage, Question
from taspo_envs.searchqa.readers import read_questions

HOTPOT = "hotpotqa_dev500_ircot.jsonl"
MILLION = 1_000_000
PROCESSES = 4


def main(arguments: Sequence[str] = ()) -> None:
    """Print one line per measurement."""
    folder = Path(os.environ.get("TASPO_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "searchqa"
    if (folder / HOTPOT).is_file():
        beside_rank_bm25(folder / HOTPOT)
    else:
        print(f"searchqa: no {folder / HOTPOT}, recall not measured")
    if "--million" in arguments:
        million()


def beside_rank_bm25(path: Path) -> None:
    """Recall of gold paragraphs and time per query over the questions' own paragraphs, ours and rank-bm25's."""
    from rank_bm25 import BM25Okapi

    questions: list[Question] = []
    passages: dict[str, Passage] = {}
    for question, paragraphs in read_questions(path, "hotpotqa"):
        questions.append(question)
        passages.update((passage.id, passage) for passage in paragraphs)
    names = list(passages)
    print(f"searchqa: {len(questions)} HotpotQA questions, {len(passages)} paragraphs")

    index = Bm25Index.build(passage.indexed() for passage in passages.values())
    okapi = BM25Okapi([terms(f"{passage.title}\n{passage.text}") for passage in passages.values()])

    def ours(query: str) -> list[str]:
        return [names[row] for row in index.top(query, 10)[0]]

    def theirs(query: str) -> list[str]:
        return [str(name) for name in okapi.get_top_n(terms(query), names, n=10)]

    own_time, own_recall = _measure("taspo-bench", ours, questions)
    other_time, other_recall = _measure("rank-bm25", theirs, questions)
    print(f"searchqa: {other_time / own_time:.0f} times faster per query (wanted: at least 50)")
    print(f"searchqa: recall at least as good: {all(a >= b for a, b in zip(own_recall, other_recall, strict=True))}")


def _measure(
    name: str, search: Callable[[str], list[str]], questions: Sequence[Question]
) -> tuple[float, tuple[float, float]]:
    seconds, found, gold = [], {3: 0, 10: 0}, 0
    for question in questions:
        start = time.perf_counter()
        ranked = search(question.text)
        seconds.append(time.perf_counter() - start)
        gold += len(question.hops)
        for k in found:
            found[k] += sum(hop.passage_id in ranked[:k] for hop in question.hops)
    recall = (found[3] / gold, found[10] / gold)
    middle = statistics.median(seconds)
    print(f"searchqa: {name}: recall@3 {recall[0]:.4f}, recall@10 {recall[1]:.4f}, {middle * 1e3:.3f} ms a query")
    return middle, recall


def million() -> None:
    """Index generated passages in a process of its own, then search them from several processes at once."""
    with tempfile.TemporaryDirectory() as folder:
        builder = subprocess.run(
            [sys.executable, __file__, "--build", folder], check=True, capture_output=True, text=True
        )
        print(builder.stdout, end="")
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
            results = pool.map(_search_million, [(folder, seed) for seed in range(PROCESSES)], chunksize=1)
    middle = statistics.median(seconds for part, _, _ in results for seconds in part)
    own = ", ".join(f"{private:.0f}" for _, private, _ in results)
    shared = ", ".join(f"{mapped:.0f}" for _, _, mapped in results)
    print(f"searchqa: search among {MILLION} passages: median {middle * 1e3:.1f} ms, {PROCESSES} processes at once")
    print(f"searchqa: {size / 2**20:.0f} MiB of index; memory per process: own {own} MiB, shared {shared} MiB")


def passage_texts(count: int, seed: int = 0) -> list[str]:
    """Sentences of invented words, the common ones as common as Zipf's law has it: about 40 words a passage."""
    rng = random.Random(seed)
    vocabulary = [f"{rng.choice('bdfgklmnprtvz')}{rng.choice('aeiou')}{number:x}" for number in range(200_000)]
    weights = [1 / (rank + 10) for rank in range(len(vocabulary))]
    words = iter(rng.choices(vocabulary, weights, k=40 * count))
    return [" ".join(next(words) for _ in range(40)) for _ in range(count)]


def build(folder: Path) -> None:
    """Build and save the index of a million passages, and print how long that took and the peak memory."""
    import resource

    texts = passage_texts(MILLION)
    (folder / "queries.json").write_text(json.dumps([" ".join(text.split()[:6]) for text in texts[:2000]]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    Bm25Index.build(texts).save(folder)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"searchqa: index of {MILLION} passages built and saved in {seconds:.0f} s")
    print(f"searchqa: peak memory {peak / 2**20:.1f} GiB, {before / 2**20:.1f} GiB of it the passages' texts")


def _search_million(job: tuple[str, int]) -> tuple[list[float], float, float]:
    """Seconds of each of 100 searches, and MiB of private and of shared memory afterwards."""
    folder, seed = Path(job[0]), job[1]
    index = Bm25Index.open(folder)
    queries = random.Random(seed).sample(json.loads((folder / "queries.json").read_text()), 100)
    seconds = []
    for query in queries:
        start = time.perf_counter()
        index.top(query, 3)
        seconds.append(time.perf_counter() - start)
    rollup = dict(
        line.split(":") for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:] if ":" in line
    )
    kib = {name: int(value.split()[0]) for name, value in rollup.items()}
    private = kib["Private_Clean"] + kib["Private_Dirty"]
    return seconds, private / 1024, (kib["Rss"] - private) / 1024


if __name__ == "__main__":
    if sys.argv[1:2] == ["--build"]:
        build(Path(sys.argv[2]))
    else:
        main(sys.argv[1:])
