"""A person plays a task in the terminal."""

from __future__ import annotations

from rich.console import Console

from taspo_bench.api import TextEnv


def play(console: Console, env: TextEnv, task_id: str | None, seed: int) -> None:
    """Play until the episode ends or the input does; ``?`` shows what can be done, ``quit`` leaves."""
    options = {"task_id": task_id} if task_id else None
    observation, info = env.reset(seed=seed, options=options)
    console.print(f"task {info['task_id']}; ? shows the actions, quit leaves", style="dim", highlight=False)
    over = False
    while not over:
        console.print(observation, markup=False, highlight=False)
        try:
            action = console.input("> ")
        except (EOFError, KeyboardInterrupt):
            console.print()
            return
        if action.strip() == "quit":
            return
        if action.strip() == "?":
            observation = "\n".join([*(info["admissible_actions"] or []), *env.action_templates])
            continue
        observation, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    console.print(observation, markup=False, highlight=False)
    end = "won" if info["won"] else "lost"
    console.print(f"{end} after {env.steps} steps, score {info['score']:.2f}", style="bold")
