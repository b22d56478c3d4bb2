"""Chat formats: ids are carried exactly as the template writes them, spans are exact, nothing can be forged."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat_world import FAMILIES, chat_tokenizer
from taspo_bench.errors import InputError
from taspo_bench.policies.chat_format import ChatFormat
from taspo_bench.policies.window import MAX_ACTION

OBSERVATIONS = ["You see box 1 and a door.", "You open box 1. It is empty.", "You take the key. "]
ACTIONS = ["open box 1", "take key"]
REWRITTEN = {("qwen3", "bare"), ("qwen3", "think")}


def carried(fmt: ChatFormat) -> list[list[int]]:
    """The context before each of three responses."""
    contexts, ids = [], []
    for turn, observation in enumerate(OBSERVATIONS):
        ids = ids + fmt.observe(observation, is_first=turn == 0)
        contexts.append(ids)
        ids = ids + (fmt.respond(ACTIONS[turn]) if turn < len(ACTIONS) else [])
    return contexts


@pytest.mark.parametrize("style", ["bare", "think"])
@pytest.mark.parametrize("family", FAMILIES)
def test_ids_of_a_turn_begin_those_of_the_next_or_the_template_is_refused_by_name(family, style):
    tokenizer = chat_tokenizer(family)
    if (family, style) in REWRITTEN:
        with pytest.raises(InputError, match=f"chat template of {family}: .*context=window"):
            ChatFormat(tokenizer, style=style)
        fmt = ChatFormat(tokenizer, style=style, keep_reasoning=True)
    else:
        fmt = ChatFormat(tokenizer, style=style)
    contexts = carried(fmt)
    for before, after in pairwise(contexts):
        assert after[: len(before)] == before


@pytest.mark.parametrize("style", ["bare", "think"])
@pytest.mark.parametrize("family", FAMILIES)
def test_carried_ids_are_those_of_the_conversation_that_the_template_writes(family, style):
    if (family, style) in REWRITTEN:
        pytest.skip("this template writes earlier turns otherwise; it is refused")
    tokenizer = chat_tokenizer(family)
    fmt = ChatFormat(tokenizer, style=style)
    first = f"{OBSERVATIONS[0]}\n\n{fmt.instruction}"
    messages = [{"role": "user", "content": first}]
    for observation, action in zip(OBSERVATIONS[1:], ACTIONS, strict=True):
        messages += [
            {"role": "assistant", "content": fmt.respond_text(action)},
            {"role": "user", "content": observation.strip()},
        ]
    text = tokenizer.apply_chat_template(
        messages,
        tokenize=False,
        add_generation_prompt=True,
        enable_thinking=style == "think",
        date_string="26 Jul 2024",
    )
    tokenizer.backend_tokenizer.encode_special_tokens = False
    assert carried(fmt)[-1] == tokenizer.encode(text, add_special_tokens=False)


@pytest.mark.parametrize("thinking", [False, True])
def test_qwen3_is_asked_with_its_reasoning_on_or_off(thinking):
    fmt = ChatFormat(chat_tokenizer("qwen3"), style="think" if thinking else "bare", window=2)
    prompt = fmt.tokenizer.decode(fmt.ask("What now?"))
    assert prompt.endswith("<|im_start|>assistant\n" if thinking else "<think>\n\n</think>\n\n")


def test_the_date_in_a_prompt_is_not_todays():
    fmt = ChatFormat(chat_tokenizer("llama-3"))
    assert "Today Date: 26 Jul 2024" in fmt.tokenizer.decode(fmt.ask("What now?"))


@pytest.mark.parametrize("family", FAMILIES)
def test_special_tokens_in_an_observation_stay_text(family):
    fmt = ChatFormat(chat_tokenizer(family), keep_reasoning=True)
    forged = "".join(fmt.tokenizer.all_special_tokens)
    plain, attacked = fmt.observe("x", is_first=False), fmt.observe(f"x{forged}", is_first=False)
    specials = set(fmt.tokenizer.all_special_ids)
    assert [i for i in attacked if i in specials] == [i for i in plain if i in specials]
    assert forged in fmt.tokenizer.decode(attacked)


def test_guidance_stands_inside_the_users_message():
    fmt = ChatFormat(chat_tokenizer("smollm2"))
    prompt = fmt.observe("You see a door.", is_first=True)
    at_end = prompt[: -fmt.cue_tokens] + fmt.guide("open it") + prompt[-fmt.cue_tokens :]
    in_front = prompt[: fmt.head_tokens] + fmt.guide("open it") + prompt[fmt.head_tokens :]
    assert "\n\nAdvice:\nopen it\n\n<|im_end|>\n<|im_start|>assistant\n" in fmt.tokenizer.decode(at_end)
    assert "<|im_start|>user\n\n\nAdvice:\nopen it\n\nYou see a door." in fmt.tokenizer.decode(in_front)


@given(
    before=st.text(max_size=30).filter(lambda text: "<" not in text),
    action=st.text(min_size=1, max_size=20).filter(lambda text: "<" not in text),
    tag=st.sampled_from(["action", "search", "answer"]),
    is_thought=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_the_span_of_an_action_is_exact_in_tokens(before, action, tag, is_thought):
    fmt = SPANS
    lead = f"<think>{before}<action>no</action></think>" if is_thought else before
    ids = [*fmt.encode(f"{lead}<{tag}>{action}</{tag}>"), fmt.stop_id]
    _, parsed, span = fmt.parse(ids, sampled=len(ids) - 1)
    assert span is not None
    inside = fmt.decode(ids[slice(*span)])
    assert f"<{tag}>" in inside and inside.count("</") == 1
    assert f"<{tag}>" not in fmt.decode(ids[span[0] + 1 : span[1]])
    assert f"</{tag}>" not in fmt.decode(ids[span[0] : span[1] - 1])
    words = " ".join((action if tag == "action" else f"<{tag}>{action}</{tag}>").split())
    assert parsed == words


SPANS = ChatFormat(chat_tokenizer("smollm2"), style="think")


@pytest.mark.parametrize(
    ("text", "action", "inside"),
    [
        (
            "I must write the action between <action> and </action>. <action>go to shelf 1</action>",
            "go to shelf 1",
            "<action>go to shelf 1</action>",
        ),
        ("The tag <action> holds it: <action>open</action>", "open", "<action>open</action>"),
        (
            "<answer>Paris</answer> Wait, rather <answer>Lyon</answer>",
            "<answer>Lyon</answer>",
            "<answer>Lyon</answer>",
        ),
        ("<think><action>no</action></think><action>yes</action> so", "yes", "<action>yes</action>"),
    ],
)
def test_the_action_that_is_taken_is_the_span_that_is_credited(text, action, inside):
    ids = [*SPANS.encode(text), SPANS.stop_id]
    _, parsed, span = SPANS.parse(ids, len(ids))
    assert parsed == action and span is not None
    assert SPANS.decode(ids[slice(*span)]).strip().startswith(inside)
    assert inside not in SPANS.decode(ids[span[0] + 1 : span[1]]) and inside not in SPANS.decode(ids[: span[1] - 1])


@pytest.mark.parametrize(
    "text", ["", "open the box", "<action>open", "<think><action>open</action></think>", "<search>a</answer>"]
)
def test_a_response_without_a_whole_action_has_no_span(text):
    ids = [*SPANS.encode(text), SPANS.stop_id]
    assert SPANS.parse(ids, len(ids))[1:] == ("", None)


def test_an_action_of_any_length_that_no_benchmark_takes_is_none():
    ids = SPANS.encode(f"<action>{'a b' * MAX_ACTION}</action>")
    assert SPANS.parse(ids, len(ids))[1:] == ("", None)


def test_a_reasoned_response_ends_at_the_closing_tag_and_not_before():
    ids = SPANS.encode("<think>so</think>\n<action>open box 1</action>")
    assert [SPANS.ends(ids[:count]) for count in range(1, len(ids) + 1)] == [False] * (len(ids) - 1) + [True]


@pytest.mark.parametrize(
    "text", ["<think>a <action>no</action> b</think> so <search>key</search>", "<action>x</action>"]
)
def test_an_action_in_the_midst_of_reasoning_ends_no_response(text):
    ids = SPANS.encode(text)
    assert [SPANS.ends(ids[:count]) for count in range(1, len(ids) + 1)] == [False] * (len(ids) - 1) + [True]


def test_reasoning_that_the_prompt_opens_is_reasoning():
    tokenizer = chat_tokenizer("smollm2")
    tokenizer.chat_template = tokenizer.chat_template.replace("assistant\\n' }}", "assistant\\n<think>\\n' }}")
    fmt = ChatFormat(tokenizer, style="think", window=2)
    assert fmt.decode(fmt.ask("What now?")).endswith("<think>\n")
    ids = fmt.encode("a <action>no</action> b</think> so <action>yes</action>")
    assert [fmt.ends(ids[:count]) for count in range(1, len(ids) + 1)] == [False] * (len(ids) - 1) + [True]
    assert fmt.parse(ids, len(ids))[1] == "yes"


def test_a_bare_response_ends_with_its_line_and_not_with_a_blank_one_before():
    fmt = ChatFormat(chat_tokenizer("gemma"))
    ids = fmt.encode("\n\nopen box 1\n")
    assert [fmt.ends(ids[:count]) for count in range(1, len(ids) + 1)] == [False] * (len(ids) - 1) + [True]
    assert fmt.parse(ids, len(ids)) == ("\n\nopen box 1\n", "open box 1", (0, len(ids)))


def test_every_end_token_of_the_model_ends_a_response():
    tokenizer = chat_tokenizer("llama-3")
    other = tokenizer.convert_tokens_to_ids("<|begin_of_text|>")
    assert ChatFormat(tokenizer, stop_ids=[other]).ends([other])
    assert not ChatFormat(tokenizer).ends([other])


def test_a_model_without_a_chat_template_is_refused():
    tokenizer = chat_tokenizer("smollm2")
    tokenizer.chat_template = None
    with pytest.raises(InputError, match="chat template of smollm2: there is none"):
        ChatFormat(tokenizer)


def test_a_template_whose_replies_have_no_end_is_refused():
    tokenizer = chat_tokenizer("smollm2")
    tokenizer.chat_template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "
    with pytest.raises(InputError, match="ends with no special token"):
        ChatFormat(tokenizer)
