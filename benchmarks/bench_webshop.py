"""WebShop, measured: loading and stepping on the small set, flat memory, and 200,000 generated products.

Run as ``python benchmarks/bench_webshop.py [--large]``. The small set is ``$TASPO_DATA`` (default
``../shared/data``), the embedded catalogue where that is not there. Builds go to a temporary folder.
"""

from __future__ import annotations

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
from multiprocessing.synchronize import Barrier
from pathlib import Path

from taspo_envs.webshop.env import WebShopEnv
from taspo_envs.webshop.generator import iterate, words
from taspo_envs.webshop.locate import import_files
from taspo_envs.webshop.store import open_store

LARGE = 200_000
SHARE_ASKED_FOR = 0.05
PROCESSES, ENVIRONMENTS = 8, 64
RESETS = 10_000


def main(arguments: Sequence[str] = ()) -> None:
    """Print one line per measurement."""
    folder = Path(os.environ.get("TASPO_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    data = str(folder) if (folder / "webshop").is_dir() else "embedded"
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TASPO_CACHE"] = cache
        loading(data)
        stepping(data)
        resetting(data)
        if "--large" in arguments:
            large(Path(cache))


def loading(data: str) -> None:
    """Time to the first environment, in a process of its own, before and after the store is built."""
    code = f"""if True:
        import time; start = time.perf_counter()
        from taspo_envs.webshop.env import WebShopEnv
        ready = time.perf_counter(); env = WebShopEnv(data={data!r}); done = time.perf_counter()
        goals = env.store.manifest["goals"]
        print(f"imports {{ready - start:.2f}} s, environment {{done - ready:.3f}} s, goals {{goals}}")
    """
    for what in ("first, with the build", "once built"):
        run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        print(f"webshop load {data} ({what}): {run.stdout.strip()}")


def _walk(env: WebShopEnv, episodes: int, rng: random.Random) -> int:
    """Random episodes, a fifth of the actions searches; the number of steps."""
    steps = 0
    for _ in range(episodes):
        _, info = env.reset(options={"task_id": rng.choice(env.split.task_ids)})
        ended = False
        while not ended:
            clicks = info["admissible_actions"]
            search = f"search[{' '.join(rng.sample(info['instruction'].split(), 4))}]"
            action = rng.choice(clicks) if clicks and rng.random() < 0.8 else search
            _, _, terminated, truncated, info = env.step(action)
            ended = terminated or truncated
            steps += 1
    return steps


def stepping(data: str) -> None:
    """Steps a second of one environment in one process, resets included."""
    env, rng = WebShopEnv(data=data), random.Random(0)
    _walk(env, 20, rng)
    start = time.perf_counter()
    steps = _walk(env, 2000, rng)
    print(f"webshop steps on {data}: {steps / (time.perf_counter() - start):,.0f} a second on one core")


def _rss() -> float:
    """Resident memory of this process, MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def resetting(data: str) -> None:
    """Memory before and after many resets."""
    env = WebShopEnv(data=data)
    for seed in range(1000):
        env.reset(seed=seed)
    before = _rss()
    for seed in range(RESETS):
        env.reset(seed=seed)
    print(f"webshop memory over {RESETS:,} resets: {before:.1f} MB before, {_rss():.1f} MB after")


def write_large(folder: Path, products: int = LARGE) -> list[Path]:
    """Generated raw files in WebShop's layout, written product by product."""
    files = [folder / name for name in ("items_shuffle.json", "items_ins_v2.json", "items_human_ins.json")]
    per_type = -(-products // len(words().product_types))
    with files[0].open("w") as raw, files[1].open("w") as attributes, files[2].open("w") as human:
        for number, (product, entry, wishes) in enumerate(iterate(0, per_type, SHARE_ASKED_FOR)):
            asin = json.dumps(product["asin"])
            raw.write(("[" if number == 0 else ",") + json.dumps(product))
            attributes.write(("{" if number == 0 else ",") + f"{asin}:{json.dumps(entry)}")
            if wishes:
                human.write(("{" if human.tell() == 0 else ",") + f"{asin}:{json.dumps(wishes)}")
        raw.write("]")
        attributes.write("}")
        human.write("}")
    return files


def _import(files: list[Path], destination: Path) -> None:
    start = time.perf_counter()
    store = import_files(files, destination)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    size = sum(path.stat().st_size for path in destination.iterdir()) / 1e6
    print(
        f"webshop import of {len(store):,} products ({store.manifest['goals']['human']:,} goals): "
        f"{time.perf_counter() - start:.0f} s in one process, peak {peak:.2f} GB, store {size:.0f} MB"
    )


def _in_process(target: Callable[..., None], *arguments: object) -> None:
    process = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{target.__name__} failed")


def large(folder: Path) -> None:
    """Build, search and share a catalogue of 200,000 products."""
    files = write_large(folder)
    print(f"webshop raw files: {sum(path.stat().st_size for path in files) / 1e6:.0f} MB")
    destination = folder / "large"
    _in_process(_import, files, destination)
    searching(destination)
    sharing(destination)


def searching(folder: Path) -> None:
    """Time of a search that no one made before: the words of instructions."""
    store = open_store(folder)
    goal_ids = random.Random(1).sample(store.goal_ids("human"), 520)
    times = []
    for goal_id in goal_ids:
        query = store.goal(goal_id).instruction
        start = time.perf_counter()
        store.search(query)
        times.append(1e3 * (time.perf_counter() - start))
    times = times[20:]
    print(f"webshop search in {len(store):,}: median {statistics.median(times):.2f} ms, slowest {max(times):.1f} ms")


def _pss() -> float:
    """Proportional set size of this process, MB."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1e3


def _play(folder: Path, barrier: Barrier, results: multiprocessing.Queue[float], seed: int) -> None:
    barrier.wait()
    before = _pss()
    barrier.wait()
    envs = [WebShopEnv(data=str(folder)) for _ in range(ENVIRONMENTS)]
    rng = random.Random(seed)
    for env in envs:
        _walk(env, 3, rng)
    barrier.wait()
    results.put(_pss() - before)
    barrier.wait()


def sharing(folder: Path) -> None:
    """What processes with many environments each add, measured while all of them run."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(PROCESSES), context.Queue()
    processes = [context.Process(target=_play, args=(folder, barrier, results, seed)) for seed in range(PROCESSES)]
    for process in processes:
        process.start()
    added = [results.get() for _ in processes]
    for process in processes:
        process.join()
    print(
        f"webshop memory of {PROCESSES} processes x {ENVIRONMENTS} environments: {sum(added):.0f} MB PSS added in all"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
