"""What a run takes, against numbers worked out by hand."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from rich.console import Console

from taspo_bench import registry
from taspo_bench.api import TextEnv
from taspo_bench.budget import DEVICES, MODEL_SIZES, Workload, device_hours, forward_flops, memory, passes, workload
from taspo_bench.config import resolve
from taspo_bench.errors import InputError
from taspo_bench.plan_command import plan_training


def papers(env: str, method: str = "taspo") -> Workload:
    benchmark = registry.env_class(env)
    config = resolve("paper", benchmark.presets, {"response": "think"}, env=env, method=method)
    return workload(config, benchmark, True, registry.method_class(method).uses_guidance)


def test_the_papers_alfworld_setting_adds_up():
    work = papers("alfworld")
    assert work.episodes_per_update == 16 * 8 == 128
    assert work.episodes == 128 * 150 == 19_200
    assert work.turns == 19_200 * 50 == 960_000
    assert work.response_tokens == 960_000 * 512 == 491_520_000
    assert work.prompt_tokens == 960_000 * 2048 == 1_966_080_000
    assert work.pass_tokens == 2_457_600_000
    assert work.guidance_tokens == 960_000 * 256 == 245_760_000
    assert work.steps_per_update == 128 * 50 // 256 == 25
    assert work.optimizer_steps == 3_750


@pytest.mark.parametrize(
    ("env", "episodes", "turns", "prompt_tokens", "steps"),
    [
        ("webshop", 19_200, 288_000, 1_179_648_000, 30 * 150),
        ("searchqa", 153_600, 614_400, 2_516_582_400, 16 * 150),
    ],
)
def test_the_papers_other_settings_add_up(env, episodes, turns, prompt_tokens, steps):
    work = papers(env)
    assert (work.episodes, work.turns, work.prompt_tokens) == (episodes, turns, prompt_tokens)
    assert work.optimizer_steps == steps


@pytest.mark.parametrize(("env", "turns"), [("alfworld", 2), ("webshop", 2), ("searchqa", 4)])
def test_the_papers_turns_fit_the_context(env, turns):
    benchmark = registry.env_class(env)
    config = resolve("paper", benchmark.presets, {"context": "window", "response": "think"}, env=env)
    work = workload(config, benchmark, True, False)
    assert config.window == turns
    assert config.context_tokens >= work.prompt_tokens_per_turn + work.response_tokens_per_turn


@pytest.mark.parametrize(
    ("settings", "tokens"),
    [({}, 32), ({"response": "think"}, 512), ({"response": "think", "response_tokens": 100}, 100)],
)
def test_a_response_is_as_long_as_its_style_lets_it_be(settings, tokens):
    benchmark = registry.env_class("alfworld")
    config = resolve("quick", benchmark.presets, settings, env="alfworld", method="grpo")
    assert workload(config, benchmark, False, False).response_tokens_per_turn == tokens


def test_a_benchmark_says_itself_how_long_its_prompts_are():
    class Corridor(TextEnv):
        default_max_steps = 50
        presets: ClassVar[Any] = {"plan": {"prompt_tokens": 100, "minibatch_turns": 10}}

    config = resolve("paper", {}, {}, env="corridor", method="grpo")
    work = workload(config, Corridor, True, False)
    assert (work.prompt_tokens_per_turn, work.steps_per_update) == (100, 16 * 8 * 50 // 10)
    Corridor.presets = {}
    assert workload(config, Corridor, True, False).prompt_tokens_per_turn == config.context_tokens


@pytest.mark.parametrize(
    ("name", "parameters"), [("1.7b", 1_720_574_976), ("3b", 3_085_938_688), ("7b", 7_615_616_512)]
)
def test_parameters_are_those_that_the_published_weights_have(name, parameters):
    assert MODEL_SIZES[name].parameters == parameters


def test_an_adapter_on_every_linear_map_has_rank_times_inputs_plus_outputs():
    # a layer of 3B: q and o 2048+2048, k and v 2048+256, three maps of the MLP 2048+11008
    a_layer = 16 * (2 * 4096 + 2 * 2304 + 3 * 13_056)
    assert MODEL_SIZES["3b"].adapter_parameters(16) == 36 * a_layer == 29_933_568


def test_every_pass_reads_its_tokens_and_guidance_only_where_there_is_some():
    size = MODEL_SIZES["3b"]
    guided = {part.name: part.tokens for part in passes(size, papers("alfworld"), "full")}
    assert guided == {
        "prompts of the rollouts": 1_966_080_000,
        "sampled responses": 491_520_000,
        "guided scoring": 2_703_360_000,
        "reference of the KL term": 2_457_600_000,
        "update, forward and backward": 2_457_600_000,
    }
    plain = {part.name for part in passes(size, papers("alfworld", "grpo"), "full")}
    assert plain == set(guided) - {"guided scoring"}


def test_a_token_forward_costs_two_operations_a_weight_and_attention_to_half_the_sequence():
    # 3B: 36 x 77,070,336 weights in linear maps, 311,164,928 in the head; 36 layers x 2 x 2048 x 2560 of attention
    by_hand = 2 * (36 * 77_070_336 + 311_164_928) + 36 * 2 * 2048 * 2560
    assert forward_flops(MODEL_SIZES["3b"], 2560) == by_hand


def test_the_update_costs_three_forward_passes_or_two_with_frozen_weights():
    size, work = MODEL_SIZES["7b"], papers("alfworld")
    forward = forward_flops(size, 2560) * 2_457_600_000
    assert passes(size, work, "full")[-1].flops == pytest.approx(3 * forward)
    assert passes(size, work, "lora")[-1].flops == pytest.approx(2 * forward)


def test_hours_are_operations_over_the_share_of_the_peak():
    size, work = MODEL_SIZES["3b"], papers("alfworld")
    update = passes(size, work, "full", utilisation=0.5)[-1]
    assert device_hours([update], DEVICES["a100"]) == pytest.approx(update.flops / (0.5 * 312e12) / 3600)


def test_memory_of_full_training_is_sixteen_bytes_a_parameter_and_two_for_the_reference():
    held = memory(MODEL_SIZES["3b"], papers("alfworld"), "full", 16, 16_384)
    assert held["trained: weights, gradients, moments"] == 16 * 3_085_938_688
    assert held["frozen: reference, or base model"] == 2 * 3_085_938_688
    # 64 sequences of 2,560 tokens, 36 layers, two heads of 128 for keys and for values, two bytes
    assert held["keys and values of rollouts"] == 64 * 2560 * 36 * 2 * 128 * 2 * 2
    # a fifth of the tokens are responses: three times 151,936 float32 each
    assert held["vocabulary at responses"] == pytest.approx(16_384 / 5 * 151_936 * 4 * 3)


@pytest.mark.parametrize("size", MODEL_SIZES)
def test_an_adapter_takes_less_memory_than_full_training(size):
    full, lora = (
        sum(memory(MODEL_SIZES[size], papers("alfworld"), t, 16, 16_384).values()) for t in ("full", "lora")
    )
    assert lora < 0.6 * full


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model_size": "4b"}, "unknown model size '4b'"),
        ({"device": "h10"}, "did you mean 'h100'"),
        ({"devices": 0}, "--devices 0"),
        ({"utilisation": 35.0}, "--utilisation 35"),
        ({"price": -1.0}, "--price -1"),
    ],
)
def test_what_makes_no_sense_is_refused(changed, message):
    given = {
        "model_size": "3b", "preset": "paper", "env": "alfworld", "method": "taspo", "device": "h100", "devices": 1,
        "utilisation": 0.35, "price": 0.0,
    }  # fmt: skip
    with pytest.raises(InputError, match=message):
        plan_training(Console(), **{**given, **changed})


def test_the_table_has_the_counts_of_the_papers_alfworld_setting(capsys):
    plan_training(Console(width=100), "3b", "paper", "alfworld", "taspo", "h100", 8, 0.35, 2.0)
    shown = " ".join(capsys.readouterr().out.split())
    for number in ("19,200", "960,000", "491,520,000", "1,966,080,000", "2,457,600,000", "245,760,000", "3,750"):
        assert number in shown
    assert "--preset paper --set context=window --set response=think" in shown
    assert "8 x NVIDIA H100 SXM" in shown and "2.00 dollars" in shown
