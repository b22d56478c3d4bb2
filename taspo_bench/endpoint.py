"""A hosted model behind any OpenAI-compatible chat endpoint: the one client of the policy and of the analyzer.

Retries that wait as long as the server asks, a deadline per request, answers cached on disk by content, every request
in an audit file, and a count of tokens and cost. The key comes from the environment and goes nowhere but into the
request.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import ssl
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from email.utils import parsedate_to_datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from taspo_bench.errors import InputError, RunError

KEY_VARIABLES = ("TASPO_ENDPOINT_KEY", "OPENAI_API_KEY")
MAX_ANSWER_BYTES = 1_000_000
MAX_WAIT_S = 30.0
TEMPORARY = (408, 409, 429, 500, 502, 503, 504, 529)
PREFIX = "endpoint:"
SCHEMA = 1

Result = TypeVar("Result")


@dataclass(frozen=True)
class Question:
    """One request. ``draw`` tells samples of one question apart in the cache; it is not sent."""

    messages: tuple[dict[str, str], ...]
    temperature: float = 0.0
    draw: int = 0


@dataclass
class Usage:
    """What an endpoint has been used for; ``cost`` in the currency of the prices."""

    requests: int = 0
    cached: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0


class _Failure(Exception):
    """One failed attempt.

    again: whether another may fare better. asked: seconds that the server wants in between, None if it does not say;
    then at least ``pause``, and longer each time.
    """

    def __init__(self, reason: str, again: bool = True, asked: float | None = None, pause: float = 0.0) -> None:
        super().__init__(reason)
        self.again, self.asked, self.pause = again, asked, pause

    def wait(self, attempt: int) -> float:
        """Seconds before the attempt that follows number ``attempt``."""
        if self.asked is not None:
            return self.asked
        return min(max(self.pause, 2.0 ** (attempt - 2) if attempt > 1 else 0.0), MAX_WAIT_S)


def split_address(address: str) -> tuple[str, str]:
    """``URL#MODEL``, with ``endpoint:`` in front or not, as the API's base address and the model's name there."""
    url, _, model = address.removeprefix(PREFIX).partition("#")
    base = _checked(url)
    if not model:
        raise InputError(f"endpoint {url!r}: name the model behind a #, as in {PREFIX}http://host/v1#model")
    return base, model


class ChatEndpoint:
    """Answers of one hosted model.

    Args:
        url: base of the API, such as ``https://api.openai.com/v1``.
        model: the model's name there.
        folder: where ``cache/`` and ``audit.jsonl`` are kept; nothing is kept if None.
        max_tokens: longest answer. timeout: seconds for one attempt.
        prices: cost of a million prompt tokens and of a million completion tokens.
        attempts: tries of one question. concurrency: requests at once.
        give_up: questions failed in a row after which none is sent any more; None never gives up.
    """

    def __init__(
        self,
        url: str,
        model: str,
        folder: Path | None = None,
        max_tokens: int = 4096,
        timeout: float = 120.0,
        prices: tuple[float, float] = (0.0, 0.0),
        attempts: int = 2,
        concurrency: int = 1,
        give_up: int | None = None,
    ) -> None:
        self.base, self.model = _checked(url), model
        self.url = self.base + "/chat/completions"
        self.max_tokens, self.timeout, self.prices, self.attempts = max_tokens, timeout, prices, attempts
        self.concurrency, self.give_up = concurrency, give_up
        self.usage = Usage()
        self.folder = folder
        if folder is not None:
            try:
                (folder / "cache").mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(
                    f"endpoint folder {folder}: {error.strerror}; name one that can be written"
                ) from error
        self._key = _key()
        self._length_name = "max_tokens"
        self._failed_in_row = 0
        self._last_reason = ""

    def ask(self, prompts: Sequence[str]) -> list[str | RunError]:
        """Answers to user messages at temperature 0; where one is empty, an error says so."""
        answers = self.answers([Question(({"role": "user", "content": prompt},)) for prompt in prompts])
        empty = self._error("the answer is empty or refused")
        return [answer if isinstance(answer, RunError) or answer.strip() else empty for answer in answers]

    def answers(self, questions: Sequence[Question]) -> list[str | RunError]:
        """The answers in the order of the questions, an error in place of each that could not be had.

        An answer may be empty: that is what the model said.
        """
        return _run(lambda: self._answer_all(questions)) if questions else []

    async def _answer_all(self, questions: Sequence[Question]) -> list[str | RunError]:
        limit = asyncio.Semaphore(self.concurrency)
        async with httpx.AsyncClient(timeout=None, verify=self._certificates) as client:

            async def answer(question: Question) -> str | RunError:
                async with limit:
                    return await self._answer(client, question)

            return list(await asyncio.gather(*map(answer, questions)))

    async def _answer(self, client: httpx.AsyncClient, question: Question) -> str | RunError:
        body = {"model": self.model, "messages": list(question.messages), "temperature": question.temperature}
        content = [self.url, {**body, "max_tokens": self.max_tokens}, *([question.draw] if question.draw else [])]
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        if (cached := self._read(digest)) is not None:
            self.usage.cached += 1
            return cached
        if self.give_up is not None and self._failed_in_row >= self.give_up:
            return self._error(f"given up after {self.give_up} failures in a row, the last: {self._last_reason}")
        reason = ""
        for attempt in range(1, self.attempts + 1):
            started = time.monotonic()
            try:
                answer, tokens = await self._request(client, body)
            except _Failure as failure:
                self.usage.failed += 1
                reason = self._safe(str(failure))
                self._log(digest, attempt, started, question, error=reason)
                if not failure.again:
                    break
                if attempt < self.attempts:
                    await asyncio.sleep(failure.wait(attempt))
                continue
            self._count(tokens)
            self._log(digest, attempt, started, question, answer=answer, tokens=tokens)
            self._write(digest, answer)
            self._failed_in_row = 0
            return answer
        self._failed_in_row, self._last_reason = self._failed_in_row + 1, reason
        return self._error(reason)

    # --- one attempt -------------------------------------------------------------------------------

    async def _request(self, client: httpx.AsyncClient, body: dict[str, Any]) -> tuple[str, tuple[int, int]]:
        """Answer, and (prompt, completion) tokens, of one HTTP request."""
        self.usage.requests += 1
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        sent = {**body, self._length_name: self.max_tokens}
        try:
            async with (
                asyncio.timeout(self.timeout),
                client.stream("POST", self.url, json=sent, headers=headers) as response,
            ):
                content = bytearray()
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > MAX_ANSWER_BYTES:
                        raise _Failure(f"an answer of more than {MAX_ANSWER_BYTES} bytes", again=False)
        except TimeoutError as error:
            raise _Failure(f"no whole answer within {self.timeout} s") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _Failure(f"{type(error).__name__}: {error}") from error
        if response.status_code != 200:
            raise self._refused(response, bytes(content), "max_tokens" in sent)
        return self._parse(bytes(content))

    def _refused(self, response: httpx.Response, content: bytes, is_old_name: bool) -> _Failure:
        text = content.decode(errors="replace")
        reason = f"status {response.status_code}: {text[:200]}"
        if response.status_code == 400 and is_old_name and "max_completion_tokens" in text:
            self._length_name = "max_completion_tokens"  # the only name that some hosts' newer models know
            return _Failure(reason)
        return _Failure(reason, response.status_code in TEMPORARY, _retry_after(response.headers), pause=1.0)

    def _parse(self, content: bytes) -> tuple[str, tuple[int, int]]:
        try:
            found = json.loads(content)
            message = found["choices"][0]["message"]
            text = message["content"] or message.get("refusal") or ""
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
            raise _Failure("the answer is not a chat completion") from error
        if not isinstance(text, str):
            raise _Failure("the answer's content is not text", again=False)
        usage = found.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        # a lone surrogate is no text that could be written down
        text = self._safe(text).encode(errors="replace").decode()
        return text, (_whole(counts.get("prompt_tokens")), _whole(counts.get("completion_tokens")))

    def _count(self, tokens: tuple[int, int]) -> None:
        self.usage.prompt_tokens += tokens[0]
        self.usage.completion_tokens += tokens[1]
        self.usage.cost += (tokens[0] * self.prices[0] + tokens[1] * self.prices[1]) / 1e6

    def _error(self, reason: str) -> RunError:
        return RunError(f"endpoint {self.url}, model {self.model!r}: {reason}")

    def _safe(self, text: str) -> str:
        # a server may send back what it was sent
        return text.replace(self._key, "[key]") if self._key else text

    @cached_property
    def _certificates(self) -> ssl.SSLContext | bool:
        return httpx.create_ssl_context() if self.url.startswith("https://") else False

    # --- files -------------------------------------------------------------------------------------

    def _read(self, digest: str) -> str | None:
        if self.folder is None:
            return None
        try:
            answer = json.loads((self.folder / "cache" / f"{digest}.json").read_text(encoding="utf-8"))["answer"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return answer if isinstance(answer, str) else None

    def _write(self, digest: str, answer: str) -> None:
        if self.folder is None or not answer.strip():
            return
        temporary = self.folder / "cache" / f"{digest}.{os.getpid()}.tmp"
        temporary.write_text(json.dumps({"model": self.model, "answer": answer}), encoding="utf-8")
        os.replace(temporary, temporary.with_name(f"{digest}.json"))

    def _log(
        self,
        digest: str,
        attempt: int,
        started: float,
        question: Question,
        answer: str = "",
        error: str = "",
        tokens: tuple[int, int] = (0, 0),
    ) -> None:
        if self.folder is None:
            return
        line = {
            "schema": SCHEMA,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "request": digest,
            "model": self.model,
            "attempt": attempt,
            "seconds": round(time.monotonic() - started, 3),
            "tokens": tokens,
            "total": asdict(self.usage),
            "prompt": "\n\n".join(message["content"] for message in question.messages),
            "answer": answer,
            "error": error,
        }
        with (self.folder / "audit.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _checked(url: str) -> str:
    """The address without a slash at its end; refused if it cannot be one, or holds what must stay secret."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")  # as the name is looked up: no part empty or too long
        is_whole = parts.scheme in ("http", "https") and bool(host) and (parts.port or 1) > 0
    except ValueError:
        is_whole = False
    if not is_whole:
        raise InputError(f"endpoint {url!r}: give the base address of the API, such as https://host/v1")
    if parts.username is not None or parts.query:
        # not repeated in the message: it may hold the key
        raise InputError(
            f"endpoint at {parts.hostname}: leave user, key and query out of the address; "
            f"the key is read from {' or '.join(KEY_VARIABLES)}"
        )
    return url.rstrip("/")


def _key() -> str:
    for name in KEY_VARIABLES:
        if key := os.environ.get(name, "").strip():
            if not (key.isascii() and key.isprintable()):
                raise InputError(f"{name} holds characters that no key has; set it to the key alone")
            return key
    return ""


def _retry_after(headers: httpx.Headers) -> float | None:
    """Seconds that the server asks to wait, at most MAX_WAIT_S; None where it does not say."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError):
            return None
    return min(max(seconds, 0.0), MAX_WAIT_S) if seconds == seconds else None


def _whole(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _run(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine to its end, also where a notebook's own loop is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work()).result()
