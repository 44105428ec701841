"""Voyage's embeddings and batches: OpenAI's shapes with its own error bodies, limits and query and document sides."""

from __future__ import annotations

from typing import Any

from tests.fakes.faults import STATUS_FAULTS
from tests.fakes.jobs import Job, parse_lines
from tests.fakes.loopback import Reply, Request
from tests.fakes.openai import FakeOpenAI, spoil_answer
from tests.fakes.provider import ApiFailure, retry_header
from tests.fakes.vectors import token_count

MAX_INPUTS = 1000
CONTEXT_TOKENS = 32_000
REQUEST_TOKENS = {"voyage-4-large": 120_000, "voyage-3-large": 120_000, "voyage-4-lite": 1_000_000}
OTHER_REQUEST_TOKENS = 320_000
MAX_BATCH_INPUTS = 100_000


def detail(text: str) -> dict[str, str]:
    """Return an error in Voyage's envelope."""
    return {"detail": text}


class FakeVoyage(FakeOpenAI):
    """`POST /v1/embeddings` with `input_type`, `/v1/files` and `/v1/batches` with `request_params`."""

    name = "voyage"
    default_dimensions = 1024
    key_prefix = "pa-"
    completion_window = "12h"

    def refusal(self, given: str | None) -> ApiFailure:
        return ApiFailure(401, detail("Provided API key is invalid." if given else "No API key was provided."))

    def failure(self, fault: str, retry_after: str | None) -> ApiFailure:
        bodies = {
            "rate_limited": detail("Request was rejected because of the rate limits of 2000 RPM and 3000000 TPM."),
            "quota": detail("Your account has no credits left, please check your billing details: quota exceeded."),
            "unauthorized": detail("Provided API key is invalid."),
            "bad_request": detail("The request body is not valid."),
            "500": detail("Internal server error"),
            "503": detail("Service is overloaded, please try again later"),
        }
        return ApiFailure(STATUS_FAULTS[fault], bodies[fault], **retry_header(retry_after))

    def respond(self, request: Request) -> Reply:
        if not self.route_of(request):
            raise ApiFailure(404, detail("Not Found"))
        try:
            return super().respond(request)
        except ApiFailure as failure:
            body = parse_lines(failure.reply.body)[0]
            if "error" not in body:
                raise
            raise ApiFailure(failure.reply.status, detail(body["error"]["message"])) from failure

    def inputs(self, body: dict[str, Any]) -> list[str]:
        texts = super().inputs(body)
        if body.get("input_type") not in {None, "query", "document"}:
            raise ApiFailure(400, detail("Value 'input_type' is invalid. Allowed values are: query, document, null."))
        if body.get("encoding_format") not in {None, "base64"}:
            raise ApiFailure(400, detail("Value 'encoding_format' is invalid. Allowed values are: base64, null."))
        if body.get("output_dtype", "float") not in {None, "float"}:
            raise ApiFailure(400, detail("This fake serves output_dtype float only."))
        return texts

    def check_limits(self, texts: list[str], body: dict[str, Any]) -> None:
        if self.poisoned(texts):
            raise ApiFailure(400, detail("An input cannot be processed."))
        if len(texts) > MAX_INPUTS:
            raise ApiFailure(400, detail(f"The batch size limit is {MAX_INPUTS}. Your batch size is {len(texts)}."))
        counts = [token_count(text) for text in texts]
        if max(counts) > CONTEXT_TOKENS and body.get("truncation") is False:
            message = f"an example in your batch has {max(counts)} tokens, more than the {CONTEXT_TOKENS} of the model"
            raise ApiFailure(
                400, detail(f"Request to model '{body['model']}' failed: {message} and truncation is off.")
            )
        limit = REQUEST_TOKENS.get(body["model"], OTHER_REQUEST_TOKENS)
        total = sum(min(count, CONTEXT_TOKENS) for count in counts)
        if total > limit:
            message = (
                f"Request to model '{body['model']}' failed. The max allowed tokens per submitted batch is {limit}. "
                f"Your batch has {total} tokens after truncation. Please lower the number of tokens in the batch."
            )
            raise ApiFailure(400, detail(message))

    def size_asked(self, body: dict[str, Any]) -> int:
        asked = body.get("output_dimension")
        if asked is None:
            return self.dimensions
        if not isinstance(asked, int) or not 1 <= asked <= 2048:
            raise ApiFailure(400, detail(f"Value 'output_dimension' {asked} is not supported by the model."))
        return asked

    def side_of(self, body: dict[str, Any]) -> str:
        return body.get("input_type") or ""

    def embeddings(self, body: dict[str, Any], texts: Any, vectors: Any, order: str) -> Any:
        answer = super().embeddings(body, texts, vectors, order)
        return {**answer, "usage": {"total_tokens": answer["usage"]["total_tokens"]}}

    def check_job(self, body: dict[str, Any]) -> None:
        super().check_job(body)
        parameters = body.get("request_params")
        if not isinstance(parameters, dict) or not parameters.get("model"):
            raise ApiFailure(400, detail("request_params.model is required."))
        if "input" in parameters:
            raise ApiFailure(400, detail("request_params must not hold input."))

    def job_lines(self, content: bytes) -> list[dict[str, Any]]:
        try:
            lines = parse_lines(content)
            ids = [line["custom_id"] for line in lines]
            inputs = sum(len(line["body"]["input"]) if isinstance(line["body"]["input"], list) else 1 for line in lines)
        except (ValueError, KeyError) as error:
            raise ApiFailure(400, detail(f"The input file is not valid: {error}")) from error
        if len(set(ids)) < len(ids):
            raise ApiFailure(400, detail("Each custom_id must be unique."))
        if inputs > MAX_BATCH_INPUTS:
            raise ApiFailure(400, detail(f"A batch holds at most {MAX_BATCH_INPUTS} inputs."))
        return lines

    def run_line(self, line: dict[str, Any], job: Job, at: int) -> tuple[int, Any]:
        body = {**job.request["request_params"], **line["body"]}
        try:
            answer = self.embed(body, in_job=True)
        except ApiFailure as failure:
            return failure.reply.status, parse_lines(failure.reply.body)[0]
        spoil_answer(job.fault, answer["data"], odd=at % 2 == 1)
        return 200, answer
