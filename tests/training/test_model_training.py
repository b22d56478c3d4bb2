"""Training of language models: adapters, their reference, both kinds of context, folders that others start from."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from chat_world import chat_policy
from corridor import Corridor
from taspo_bench.config import CellConfig
from taspo_bench.credit import Credit
from taspo_bench.errors import DataError
from taspo_bench.rollout import Start, rollout
from taspo_bench.training.checkpoint import load_trainer, save_trainer
from taspo_bench.training.loop import Trainer

pytest.importorskip("peft", reason="needs the extra taspo-bench[peft]")

from taspo_bench.policies.adapters import add_lora, merge_adapter
from taspo_bench.policies.models import checkpoint_activations
from taspo_bench.training import model_warm_start
from taspo_bench.training.model_folder import save_model_folder
from taspo_bench.training.model_warm_start import AdapterSettings, tokenize, train_adapter
from taspo_bench.training.warm_start import reference_group

make_env = partial(Corridor, max_steps=4)
WINDOW = {"window": 2, "style": "think"}


class HalfGood:
    """Made-up credit: the first half of a group is praised, the second blamed."""

    name = "half_good"
    uses_guidance = False

    def credit(self, group, scorer):
        size = len(group.episodes)
        return [
            Credit.uniform(episode, 1.0 if 2 * place < size else -1.0) for place, episode in enumerate(group.episodes)
        ]


def adapted(seed: int = 0, **settings):
    policy = chat_policy(**settings)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        policy.model = add_lora(policy.model, 4, "q_proj,v_proj")
    return policy


def trainer_of(policy, **settings) -> Trainer:
    config = CellConfig(**{"env": "corridor", "tasks_per_update": 2, "group_size": 4, "learning_rate": 0.05,
                           "kl_coef": 0.1, "entropy_coef": 0.0, **settings})  # fmt: skip
    trainer = Trainer(config, policy, HalfGood(), None, make_env, ["key-1", "key-2"])
    play = trainer.play

    def spread(number):
        groups = play(number)
        for group in groups:
            for place, episode in enumerate(group.episodes):
                episode.score = float(place % 2)
        return groups

    trainer.play = spread
    return trainer


def weights(policy, adapter: bool) -> torch.Tensor:
    return torch.cat([w.detach().flatten() for n, w in policy.model.named_parameters() if ("lora" in n) == adapter])


@pytest.mark.parametrize("way", [{}, WINDOW])
def test_an_update_changes_the_adapter_alone(way):
    policy = adapted(**way)
    base, adapter = weights(policy, False), weights(policy, True)
    trainer_of(policy).update(0)
    assert torch.equal(weights(policy, False), base)
    assert not torch.equal(weights(policy, True), adapter)


def test_the_reference_is_the_policy_without_its_adapter():
    trainer = trainer_of(adapted())
    first, second = trainer.update(0).metrics, trainer.update(1).metrics
    assert first["kl"] == pytest.approx(0.0, abs=1e-6)
    assert second["kl"] > 1e-4


def test_a_prompt_of_its_own_for_each_turn_trains_like_a_growing_conversation_of_one_turn():
    episodes = {}
    for name, way in {"window": WINDOW, "full": {"style": "think"}}.items():
        policy = adapted(**way)
        trainer = trainer_of(policy)
        trainer._envs = []
        trainer.make_env = partial(Corridor, max_steps=1)
        metrics = trainer.update(0).metrics
        episodes[name] = metrics
        assert metrics["turns"] == 1.0 and np.isfinite(metrics["grad_norm"]) and metrics["grad_norm"] > 0
        assert metrics["clip_fraction"] == 0.0


@pytest.mark.parametrize("way", [{}, WINDOW])
def test_small_micro_batches_and_checkpointing_give_the_same_gradient(way):
    norms = []
    for budget, checkpointing in ((16384, False), (300, False), (300, True)):
        policy = adapted(**way)
        if checkpointing:
            checkpoint_activations(policy.model)
        norms.append(trainer_of(policy, micro_batch_tokens=budget, kl_coef=0.0).update(0).metrics["grad_norm"])
    np.testing.assert_allclose(norms, norms[0], rtol=1e-3)


def test_a_checkpoint_of_an_adapter_holds_the_adapter_alone_and_restores_it(tmp_path):
    trainer = trainer_of(adapted())
    trainer.update(0)
    save_trainer(tmp_path, trainer.policy, trainer.optimizer, {"update": 1})
    other = trainer_of(adapted(seed=1))
    assert load_trainer(tmp_path, other.policy, other.optimizer)["update"] == 1
    assert torch.equal(weights(other.policy, True), weights(trainer.policy, True))
    assert (tmp_path / "update-00001" / "model.safetensors").stat().st_size < 4 * len(
        weights(other.policy, True)
    ) + 9999


def test_an_adapter_folder_is_merged_with_the_one_that_it_was_trained_on_top_of(tmp_path):
    def some_ids(model):
        with torch.inference_mode():
            return model(input_ids=torch.arange(20)[None]).logits

    first = adapted()
    trainer_of(first).update(0)
    save_model_folder(tmp_path / "first", CellConfig(policy="x/y"), first, {})
    second = chat_policy()
    second.model = add_lora(merge_adapter(second.model, tmp_path / "first"), 2, "all-linear")
    torch.testing.assert_close(some_ids(second.model), some_ids(first.model), atol=1e-4, rtol=1e-4)
    trainer_of(second).update(0)
    config = CellConfig(policy="x/y", warm_start=str(tmp_path / "first"))
    save_model_folder(tmp_path / "second", config, second, {})
    merged = merge_adapter(chat_policy().model, tmp_path / "second")
    torch.testing.assert_close(some_ids(merged), some_ids(second.model), atol=1e-4, rtol=1e-4)


def test_a_folder_without_an_adapter_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"adapter_config\.json"):
        merge_adapter(chat_policy().model, tmp_path)


@pytest.mark.parametrize("way", [{}, WINDOW])
def test_a_reference_episode_has_the_prompts_that_the_policy_would_have_met(way):
    policy = chat_policy(**way)
    env = make_env(max_steps=6)
    episode = rollout(lambda: env, policy, [Start("key-2", "train", 0, (1,))])[0]
    prompts = [turn.prompt_ids for turn in episode.turns]
    for turn in episode.turns:
        turn.response = turn.action
    tokenize(env, episode, policy.format)
    expected = [turn.prompt_ids for turn in episode.turns]
    assert expected[0] == prompts[0] and all(turn.restarts == bool(way) for turn in episode.turns)
    if not way:
        assert expected == prompts


class Enough(Exception):
    """Ends a warm start from within."""


def test_a_warm_start_learns_the_reference_actions():
    policy = adapted(max_response_tokens=12)
    config = CellConfig(env="corridor", learning_rate=0.03, seed=3)
    losses = []

    def report(entry):
        losses.append(entry["loss"])
        if entry["steps"] >= 80:
            raise Enough

    with pytest.raises(Enough):
        train_adapter(partial(Corridor, max_steps=6), policy, config, AdapterSettings(minutes=60, noise=0.2), report)
    assert losses[-1] < 0.85 * losses[0]


def test_every_task_of_every_lap_draws_detours_of_its_own(monkeypatch):
    drawn = []

    def watched(env, task_id, generator, noise):
        drawn.append(generator.bit_generator.state["state"]["state"])
        return reference_group(env, task_id, generator, noise)

    def report(entry):
        if len(drawn) > 2 * len(Corridor().splits()["train"]):
            raise Enough

    monkeypatch.setattr(model_warm_start, "reference_group", watched)
    with pytest.raises(Enough):
        train_adapter(make_env, adapted(), CellConfig(env="corridor"), AdapterSettings(minutes=60), report)
    assert len(set(drawn)) == len(drawn)


def test_a_warm_start_ends_when_its_time_is_over():
    curve = train_adapter(make_env, adapted(), CellConfig(env="corridor"), AdapterSettings(minutes=1e-6))
    assert [entry["steps"] for entry in curve] == [1.0]
