"""A retriever behind HTTP: the retrieval API of Search-R1 (POST /retrieve with queries, topk, return_scores).

What goes wrong on the way and may pass (no connection, a reset, a time-out, a status of 500 or more, an answer that
is not whole JSON of the right shape, or for another number of queries) is tried again a few times, each wait twice
the last. When the tries are used up, or the server refuses the request (another status than 200), :class:`RunError`
says so in one line. Nothing is ever taken for an empty result.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from taspo_bench.errors import InputError, RunError
from taspo_envs.searchqa.questions import Passage
from taspo_envs.searchqa.retrievers import Hit

_BATCH = 256  # queries in one request
_KEPT = 100_000  # results held in memory


@cache
def remote(url: str) -> HttpRetriever:
    """The client of a server that the environments of this process share.

    Its results are kept in the folder that the environment variable ``TASPO_RETRIEVER_CACHE`` names, if any.
    """
    folder = os.environ.get("TASPO_RETRIEVER_CACHE")
    return HttpRetriever(url, cache=Path(folder) if folder else None)


class _Passing(Exception):
    """A trouble that another try may mend."""


class HttpRetriever:
    """A client of a retrieval server.

    Args:
        url: the server's address; ``/retrieve`` is added unless it ends so.
        timeout: seconds that a whole request may last.
        tries: how often a request is sent at most.
        pause: seconds before the second try; doubled before each further one.
        cache: a folder that keeps every result for later runs; None for memory alone.
    """

    def __init__(
        self, url: str, timeout: float = 30.0, tries: int = 4, pause: float = 0.5, cache: Path | None = None
    ) -> None:
        if not _is_address(url):
            raise InputError(f"retriever {url!r}: give bm25, or an address such as http://127.0.0.1:8000")
        self.url = url.rstrip("/").removesuffix("/retrieve") + "/retrieve"
        self._client = httpx.Client(timeout=timeout)
        self._timeout = timeout
        self._tries, self._pause, self._cache = tries, pause, cache
        self._known: dict[tuple[str, int], list[Hit]] = {}

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """As :meth:`Retriever.search`; queries that were asked before are answered from the cache.

        Raises:
            RunError: the server cannot be reached or does not answer as the API says.
        """
        if len(self._known) > _KEPT:
            self._known.clear()
        new = [query for query in dict.fromkeys(queries) if (query, k) not in self._known]
        new = [query for query in new if not self._read(query, k)]
        for start in range(0, len(new), _BATCH):
            batch = new[start : start + _BATCH]
            for query, documents in zip(batch, self._ask(batch, k), strict=True):
                self._known[query, k] = [_hit(document) for document in documents]
                self._write(query, k, documents)
        return [self._known[query, k] for query in queries]

    def _ask(self, queries: list[str], k: int) -> list[list[Any]]:
        body = {"queries": queries, "topk": k, "return_scores": True}
        trouble = ""
        for attempt in range(self._tries):
            if attempt:
                time.sleep(self._pause * 2 ** (attempt - 1))
            try:
                return self._request(body, len(queries))
            except _Passing as error:
                trouble = str(error)
        raise RunError(
            f"retriever {self.url}: {trouble}, {self._tries} tries; start the server again and resume the run"
        )

    def _request(self, body: dict[str, Any], count: int) -> list[list[Any]]:
        status, content = self._post(body)
        if status >= 500 or status == 429:
            raise _Passing(f"status {status}")
        start = content[:60].decode(errors="replace")
        if status != 200:
            raise RunError(f"retriever {self.url}: status {status} ({start!r}); is it the address of a retriever?")
        try:
            result = json.loads(content)["result"]
            for document in (document for part in result for document in part):
                _hit(document)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _Passing(f"an answer that is no retrieval result ({start!r})") from error
        if not isinstance(result, list) or len(result) != count:
            raise _Passing(f"results for {len(result)} queries, asked for {count}")
        return result

    def _post(self, body: dict[str, Any]) -> tuple[int, bytes]:
        """Status and content of the answer; httpx bounds each wait, this the sum of them."""
        deadline = time.monotonic() + self._timeout
        late = f"no whole answer within {self._timeout:g} s"
        content = bytearray()
        try:
            with self._client.stream("POST", self.url, json=body) as response:
                for chunk in response.iter_bytes():
                    content += chunk
                    if time.monotonic() > deadline:
                        raise _Passing(late)
                return response.status_code, bytes(content)
        except httpx.TimeoutException as error:
            raise _Passing(late) from error
        except httpx.HTTPError as error:
            raise _Passing(f"no whole answer ({error})") from error

    def _file(self, query: str, k: int) -> Path | None:
        if self._cache is None:
            return None
        name = hashlib.sha256(f"{self.url}\n{k}\n{query}".encode()).hexdigest()
        return self._cache / name[:2] / f"{name}.json"

    def _read(self, query: str, k: int) -> bool:
        file = self._file(query, k)
        try:
            if file is None:
                return False
            self._known[query, k] = [_hit(document) for document in json.loads(file.read_text(encoding="utf-8"))]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return False  # not kept yet, or damaged: asked again and written anew
        return True

    def _write(self, query: str, k: int, documents: list[Any]) -> None:
        file = self._file(query, k)
        if file is None:
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps(documents, ensure_ascii=False), encoding="utf-8")
        os.replace(temporary, file)


def _is_address(url: str) -> bool:
    """Whether a request can be sent to this address: http or https, a host that a resolver takes, a port in range."""
    try:
        parts = httpx.URL(url)
        parts.host.encode("idna")
    except (httpx.InvalidURL, ValueError):
        return False
    return parts.scheme in ("http", "https") and bool(parts.host) and (parts.port or 1) <= 65535


def _hit(document: Mapping[str, Any]) -> Hit:
    """One document of an answer: ``{"document": {"contents": ..}, "score": ..}``, or the document alone."""
    inner = document.get("document", document)
    contents = inner["contents"]
    title, _, text = contents.partition("\n")
    passage = Passage.of(title.strip().strip('"'), text) if text else Passage.of("", contents)
    return Hit(passage, float(document.get("score", 0.0)))
