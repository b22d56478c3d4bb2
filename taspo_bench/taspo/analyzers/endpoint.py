"""A hosted model behind any OpenAI-compatible chat endpoint, and guidance by it.

Temperature 0, one retry, a deadline per request, answers cached on disk by content, every request in an audit file,
and a count of tokens and cost. The key comes from the environment and goes nowhere but into the request.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import asdict, dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, ClassVar

import httpx

from taspo_bench.errors import InputError, RunError
from taspo_bench.taspo.analyzers.language_model import LanguageModelAnalyzer

KEY_VARIABLES = ("TASPO_ENDPOINT_KEY", "OPENAI_API_KEY")
MAX_ANSWER_BYTES = 1_000_000
MAX_WAIT_S = 30.0
TEMPORARY = (408, 409, 429, 500, 502, 503, 504)


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
    """One failed attempt; ``wait`` seconds before the next, None if there should be none."""

    def __init__(self, reason: str, wait: float | None = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


class ChatEndpoint:
    """Answers of one hosted model.

    Args:
        url: base of the API, such as ``https://api.openai.com/v1``.
        model: the model's name there.
        folder: where ``cache/`` and ``audit.jsonl`` are kept.
        max_tokens: longest answer. timeout: seconds for one attempt.
        prices: cost of a million prompt tokens and of a million completion tokens.
    """

    def __init__(
        self,
        url: str,
        model: str,
        folder: Path,
        max_tokens: int = 4096,
        timeout: float = 120.0,
        prices: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise InputError(f"endpoint {url!r}: give the base address of the API, such as https://host/v1")
        self.url = url.rstrip("/") + "/chat/completions"
        self.model, self.max_tokens, self.timeout, self.prices = model, max_tokens, timeout, prices
        self.usage = Usage()
        self._cache, self._audit = folder / "cache", folder / "audit.jsonl"
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"endpoint folder {folder}: {error.strerror}; name one that can be written") from error
        self._key = next((key for name in KEY_VARIABLES if (key := os.environ.get(name))), "")

    def ask(self, prompt: str) -> str:
        """The model's answer to one user message; :class:`RunError` if there is none after one retry."""
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0,
            "max_tokens": self.max_tokens,
        }
        digest = hashlib.sha256(json.dumps([self.url, body], sort_keys=True).encode()).hexdigest()
        cached = self._read(digest)
        if cached is not None:
            self.usage.cached += 1
            return cached
        reason = ""
        for attempt in (1, 2):
            started = time.monotonic()
            try:
                answer, tokens = self._request(body)
            except _Failure as failure:
                self.usage.failed += 1
                reason = self._safe(str(failure))
                self._log(digest, attempt, started, prompt, error=reason)
                if failure.wait is None:
                    break
                if attempt == 1 and failure.wait:
                    time.sleep(failure.wait)
                continue
            self._count(tokens)
            self._log(digest, attempt, started, prompt, answer=answer, tokens=tokens)
            self._write(digest, answer)
            return answer
        raise RunError(f"endpoint {self.url}, model {self.model!r}: {reason}")

    # --- one attempt -------------------------------------------------------------------------------

    def _request(self, body: dict[str, Any]) -> tuple[str, tuple[int, int]]:
        """Answer, and (prompt, completion) tokens, of one HTTP request."""
        self.usage.requests += 1
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        deadline = time.monotonic() + self.timeout
        try:
            with (
                httpx.Client(timeout=self.timeout) as client,
                client.stream("POST", self.url, json=body, headers=headers) as response,
            ):
                content = bytearray()
                for chunk in response.iter_bytes():
                    content += chunk
                    if len(content) > MAX_ANSWER_BYTES:
                        raise _Failure(f"an answer of more than {MAX_ANSWER_BYTES} bytes", wait=None)
                    if time.monotonic() > deadline:
                        raise _Failure(f"no whole answer within {self.timeout} s")
        except httpx.TimeoutException as error:
            raise _Failure(f"no answer within {self.timeout} s") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _Failure(f"{type(error).__name__}: {error}") from error
        if response.status_code != 200:
            wait = _retry_after(response.headers) if response.status_code in TEMPORARY else None
            raise _Failure(f"status {response.status_code}: {bytes(content[:200]).decode(errors='replace')}", wait)
        return self._parse(bytes(content))

    def _parse(self, content: bytes) -> tuple[str, tuple[int, int]]:
        try:
            found = json.loads(content)
            text = found["choices"][0]["message"]["content"]
        except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
            raise _Failure("the answer is not a chat completion") from error
        if not isinstance(text, str) or not text.strip():
            raise _Failure("the answer is empty or refused", wait=None)
        usage = found.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        return self._safe(text), (_whole(counts.get("prompt_tokens")), _whole(counts.get("completion_tokens")))

    def _count(self, tokens: tuple[int, int]) -> None:
        self.usage.prompt_tokens += tokens[0]
        self.usage.completion_tokens += tokens[1]
        self.usage.cost += (tokens[0] * self.prices[0] + tokens[1] * self.prices[1]) / 1e6

    # --- files -------------------------------------------------------------------------------------

    def _read(self, digest: str) -> str | None:
        try:
            answer = json.loads((self._cache / f"{digest}.json").read_text(encoding="utf-8"))["answer"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return answer if isinstance(answer, str) else None

    def _write(self, digest: str, answer: str) -> None:
        temporary = self._cache / f"{digest}.{os.getpid()}.tmp"
        temporary.write_text(json.dumps({"model": self.model, "answer": answer}), encoding="utf-8")
        os.replace(temporary, self._cache / f"{digest}.json")

    def _log(
        self,
        digest: str,
        attempt: int,
        started: float,
        prompt: str,
        answer: str = "",
        error: str = "",
        tokens: tuple[int, int] = (0, 0),
    ) -> None:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "request": digest,
            "model": self.model,
            "attempt": attempt,
            "seconds": round(time.monotonic() - started, 3),
            "tokens": tokens,
            "total": asdict(self.usage),
            "prompt": prompt,
            "answer": answer,
            "error": error,
        }
        with self._audit.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _safe(self, text: str) -> str:
        # a server may send back what it was sent
        return text.replace(self._key, "[key]") if self._key else text


def _retry_after(headers: httpx.Headers) -> float:
    """Seconds that the server asks to wait, at most MAX_WAIT_S."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError):
            seconds = 1.0
    return min(max(seconds, 0.0), MAX_WAIT_S) if seconds == seconds else 1.0


def _whole(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


class EndpointAnalyzer(LanguageModelAnalyzer):
    """Guidance by a hosted model, as in the paper: an external frozen language model."""

    name: ClassVar[str] = "endpoint"

    def __init__(self, endpoint: ChatEndpoint, **settings: Any) -> None:
        super().__init__(endpoint.ask, **settings)
        self.endpoint = endpoint
