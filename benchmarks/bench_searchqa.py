"""Search-QA's retriever, measured: recall and speed beside rank-bm25, and an index of a million passages.

Run as ``python benchmarks/bench_searchqa.py [--million]``. The first part reads HotpotQA questions with their own
paragraphs from ``$TASPO_DATA`` (default ``../shared/data``).
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import random
import resource
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
from taspo_envs.searchqa.store import open_store, prepare, retriever_files

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
    """Import generated passages in a process of its own, then search them from several processes at once."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TASPO_CACHE": folder}
        builder = subprocess.run(
            [sys.executable, __file__, "--build", folder], check=True, capture_output=True, text=True, env=environment
        )
        print(builder.stdout, end="")
        with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
            results = pool.map(_search_million, [(folder, seed) for seed in range(PROCESSES)], chunksize=1)
    middle = statistics.median(seconds for part, _, _ in results for seconds in part)
    own = ", ".join(f"{private:.0f}" for _, private, _ in results)
    mapped = ", ".join(f"{files:.0f}" for _, _, files in results)
    print(f"searchqa: search among {MILLION} passages: median {middle * 1e3:.1f} ms, {PROCESSES} processes at once")
    print(f"searchqa: memory of each process: own {own} MiB, files mapped by all {mapped} MiB")


def write_corpus(path: Path, count: int, seed: int = 0) -> None:
    """Passages of 40 invented words, the common ones as common as Zipf's law has it."""
    rng = random.Random(seed)
    vocabulary = [f"{rng.choice('bdfgklmnprtvz')}{rng.choice('aeiou')}{number:x}" for number in range(200_000)]
    totals = list(itertools.accumulate(1 / (rank + 10) for rank in range(len(vocabulary))))
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            words = rng.choices(vocabulary, cum_weights=totals, k=40)
            file.write(json.dumps({"id": number, "contents": f"{words[0]} {number}\n{' '.join(words)}"}) + "\n")


def build(folder: Path) -> None:
    """Import a million passages, and print how long that took, the size on disk and the peak memory."""
    corpus = folder / "corpus.jsonl"
    write_corpus(corpus, MILLION)
    start = time.perf_counter()
    store = prepare([corpus], source="generated")
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    size = sum(file.stat().st_size for file in store.folder.iterdir()) / 2**20
    print(f"searchqa: {store.passages} passages imported in {seconds:.0f} s, peak memory {peak:.1f} GiB")
    print(f"searchqa: {size:.0f} MiB on disk, passages and index")
    (folder / "store").write_text(str(store.folder))


def _search_million(job: tuple[str, int]) -> tuple[list[float], float, float]:
    """Seconds of each of 100 searches, and MiB of the process's own and of mapped memory afterwards."""
    folder, rng = Path(job[0]), random.Random(job[1])
    index, passages = retriever_files(open_store(Path((folder / "store").read_text())))
    seconds = []
    for _ in range(100):
        query = " ".join(passages[rng.randrange(len(passages))].text.split()[:6])
        start = time.perf_counter()
        found = [passages[row] for row in index.top(query, 3)[0]]
        seconds.append(time.perf_counter() - start)
        assert found
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    kib = {name: int(value.split()[0]) for name, value in (line.split(":") for line in lines)}
    return seconds, kib["Anonymous"] / 1024, (kib["Rss"] - kib["Anonymous"]) / 1024


if __name__ == "__main__":
    if sys.argv[1:2] == ["--build"]:
        build(Path(sys.argv[2]))
    else:
        main(sys.argv[1:])
