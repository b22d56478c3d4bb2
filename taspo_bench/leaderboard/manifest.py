"""What stands in a submission: the manifest and the episode records, and how their JSON is read without trust."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from taspo_bench.leaderboard.archive import MalformedSubmission, shown

SCHEMA = 1
TRACE_DIGITS = 12
ACTION_LIMIT = 4096
RESPONSE_LIMIT = 65536


def _plain(text: str) -> str:
    if any(unicodedata.category(character) in ("Cc", "Cf", "Co", "Zl", "Zp") for character in text):
        raise ValueError("has control or formatting characters; give plain text of one line")
    if not text.strip():
        raise ValueError("is blank")
    return text


def _https(text: str) -> str:
    if not re.fullmatch(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[!-~]*)?", text) or re.search(r"[\"'<>\\`]", text):
        raise ValueError("is no https:// address")
    return text


Line = Annotated[str, Field(min_length=1, max_length=120), AfterValidator(_plain)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]{0,39}$")]
SplitName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Count = Annotated[int, Field(ge=0, lt=2**53)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Temperature = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class Strict(BaseModel):
    """No field too many, no conversion of types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Data(Strict):
    """The data stamp of :class:`taspo_bench.api.DataStamp`."""

    source: Line
    version: Line
    sha256: Digest


class Claim(Strict):
    """What is claimed of one split, over all seeds: episodes handed in, share of wins and mean score.

    The shares are over all tasks of the split and all seeds; one that was not handed in counts 0.
    """

    episodes: Count
    success: Share
    score: Share


class SplitClaim(Strict):
    """One evaluated split: the hash of its task ids, their number, and the claim."""

    sha256: Digest
    tasks: Annotated[int, Field(ge=1, lt=2**32)]
    claimed: Claim


class Budget(Strict):
    """What training took, per seed (the largest); None where it is not declared. Declared, not verifiable."""

    environment_steps: Count | None = None
    response_tokens: Count | None = None


class Benchmark(Strict):
    """One benchmark of a submission. ``max_turns`` is the step limit that the episodes were played with.

    temperature: the policy's in these episodes; None where it is not said. Declared, not verifiable.
    """

    data: Data
    max_turns: Annotated[int, Field(ge=1, lt=2**31)]
    temperature: Temperature | None = None
    splits: Annotated[dict[SplitName, SplitClaim], Field(min_length=1, max_length=64)]
    budget: Budget


class Manifest(Strict):
    """manifest.json. ``ranked`` is False for references that see more than an agent may, such as the expert."""

    schema_version: Annotated[int, Field(ge=SCHEMA, le=SCHEMA)]
    name: Line
    method: Line
    base_model: Line
    parameters_trained: Count | None
    ranked: bool
    seeds: Annotated[list[Seed], Field(min_length=1, max_length=100)]
    licence: Line
    contact: Line | None = None
    code: Annotated[str, Field(max_length=300), AfterValidator(_https)] | None = None
    made_with: Line
    benchmarks: Annotated[dict[Name, Benchmark], Field(min_length=1, max_length=32)]

    @model_validator(mode="after")
    def _seeds_differ(self) -> Manifest:
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError("a seed stands in seeds twice")
        return self


class EpisodeRecord(Strict):
    """One line of episodes/BENCHMARK.jsonl.

    trace: after each action, the first digits of the running hash of :class:`taspo_bench.leaderboard.replay.Trace`
        over everything the agent had read and done; it names the very step at which a replay departs.
    responses: what the policy wrote, one text an action, where the submitter chooses to show it.
    """

    split: SplitName
    task_id: Annotated[str, Field(min_length=1, max_length=500)]
    seed: Seed
    steps: Count
    won: bool
    score: Share
    actions: Annotated[list[Annotated[str, Field(max_length=ACTION_LIMIT)]], Field(max_length=10_000)]
    trace: list[Annotated[str, Field(pattern=rf"^[0-9a-f]{{{TRACE_DIGITS}}}$")]]
    responses: list[Annotated[str, Field(max_length=RESPONSE_LIMIT)]] | None = None

    @model_validator(mode="after")
    def _one_of_each_per_step(self) -> EpisodeRecord:
        for field in ("actions", "trace", "responses"):
            value = getattr(self, field)
            if value is not None and len(value) != self.steps:
                raise ValueError(f"steps is {self.steps}, but {field} has {len(value)} entries")
        return self


Model = TypeVar("Model", bound=Strict)


def parse(model: type[Model], data: bytes, place: str) -> Model:
    """Untrusted bytes as a record; :class:`MalformedSubmission` names the place and the field."""
    value = _json(data, place)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = shown(".".join(str(part) for part in first["loc"])).strip("'")
        what = first["msg"].removeprefix("Value error, ")
        raise MalformedSubmission(f"{place}{', ' + field if field else ''}: {what}") from error


def _json(data: bytes, place: str) -> Any:
    if data.startswith(b"\xef\xbb\xbf"):
        raise MalformedSubmission(f"{place}: begins with a byte order mark; write UTF-8 without one")
    if b"\r" in data:
        raise MalformedSubmission(f"{place}: has carriage returns; end lines with LF alone")
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        raise MalformedSubmission(f"{place}: byte {error.start} is not UTF-8") from error
    except RecursionError as error:
        raise MalformedSubmission(f"{place}: nested too deeply") from error
    except ValueError as error:
        raise MalformedSubmission(f"{place}: not JSON ({error})") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for index, (key, _) in enumerate(pairs) if key in dict(pairs[:index]))
        raise ValueError(f"the key {shown(twice, 40)} stands in one object twice")
    return found
