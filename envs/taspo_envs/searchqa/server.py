"""A BM25 index served by the retrieval API of Search-R1, so that several machines can share one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taspo_bench.errors import InputError
from taspo_envs.searchqa.retrievers import Hit, Retriever
from taspo_envs.searchqa.splits import load

if TYPE_CHECKING:
    from fastapi import FastAPI

MAX_TOP_K = 1000


def app(retriever: Retriever) -> FastAPI:
    """The application: POST /retrieve answers queries, GET /health says that it is there.

    Raises:
        InputError: the extra ``serve`` is not installed.
    """
    try:
        from fastapi import FastAPI
        from pydantic import BaseModel, Field
    except ImportError as error:
        raise InputError("serving needs FastAPI: pip install 'taspo-bench[serve]'") from error

    class Request(BaseModel):
        queries: list[str]
        topk: int = Field(default=3, ge=1, le=MAX_TOP_K)
        return_scores: bool = False

    application = FastAPI(title="taspo-bench retriever")

    def retrieve(request: Request) -> dict[str, Any]:
        found = retriever.search(request.queries, request.topk)
        return {"result": [[_document(hit, request.return_scores) for hit in hits] for hits in found]}

    # Annotations are strings here, and the model is local: the framework is given the class itself.
    retrieve.__annotations__["request"] = Request
    application.post("/retrieve")(retrieve)
    application.get("/health")(lambda: {"status": "ok"})
    return application


def _document(hit: Hit, with_score: bool) -> dict[str, Any]:
    document = {"id": hit.passage.id, "contents": f'"{hit.passage.title}"\n{hit.passage.text}'}
    return {"document": document, "score": hit.score} if with_score else document


def serve(data: str = "embedded", host: str = "127.0.0.1", port: int = 8000) -> None:
    """Serve the passages of ``data`` until stopped. :class:`InputError` if the extra ``serve`` is missing."""
    application = app(load(data).open_retriever())
    import uvicorn

    uvicorn.run(application, host=host, port=port, log_level="warning")
