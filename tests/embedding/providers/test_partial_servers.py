"""Servers that offer a provider's API only in part, through a real memory."""

from __future__ import annotations

import pytest

from tests.fakes.gemini import FakeGemini
from tests.fakes.loopback import Reply
from tests.fakes.openai import FakeOpenAI, problem
from tests.fakes.provider import ApiFailure

from .opening import open_memory


class NoBase64(FakeOpenAI):
    """A server that validates its input and knows only numbers, as some gateways do."""

    def embed(self, body, *, in_job=False):
        if body.get("encoding_format") != "float":
            raise ApiFailure(422, problem("Input should be 'float'", param="encoding_format"))
        return super().embed(body, in_job=in_job)


class OneMethod(FakeGemini):
    """A gateway that passes on only one of Gemini's two methods."""

    method = ""

    def respond(self, request):
        if not request.path.endswith(f":{self.method}"):
            return Reply(404, b'{"error": {"code": 404, "message": "no such method"}}')
        return super().respond(request)


class OnlySingle(OneMethod):
    method = "embedContent"


class OnlyBatch(OneMethod):
    method = "batchEmbedContents"


@pytest.fixture
def notes(tmp_path):
    for number in range(5):
        note = tmp_path / "notes" / "memory" / f"n{number}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(f"# Shed {number}\n\nThe harbour keeps subject{number} there.\n")
    return tmp_path / "notes"


@pytest.mark.parametrize(
    ("fake_class", "indexing", "searching"),
    [
        pytest.param(NoBase64, 2, 1, id="OpenAI's without base64: the refused request, then numbers"),
        pytest.param(OnlySingle, 6, 1, id="Gemini's embedContent alone: the missing method, then text by text"),
        pytest.param(OnlyBatch, 1, 1, id="Gemini's batchEmbedContents alone"),
    ],
)
def test_a_server_with_part_of_the_api_embeds_everything(notes, fake_class, indexing, searching):
    with fake_class() as fake, open_memory(notes, fake) as memory:
        report = memory.index()
        assert (report.embedded, report.pending, report.problems) == (5, 0, ())
        assert len(fake.requests) == indexing
        answer = memory.search("subject3", sync=False)
        assert (answer.mode, answer.hits[0].path) == ("hybrid", "memory/n3.md")
        assert len(fake.requests) == indexing + searching  # it is remembered


def test_a_text_that_is_refused_does_not_hide_that_base64_is(notes):
    with NoBase64() as fake, open_memory(notes, fake) as memory:
        fake.poison("subject2")
        report = memory.index()
        assert (report.embedded, report.pending) == (4, 1)
        assert [problem.path for problem in report.problems] == ["memory/n2.md#L1"]
