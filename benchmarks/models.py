"""`python -m benchmarks.models`: how fast the packaged models embed, beside each other in one process.

Chunks have 400 tokens; CPU time is that of the whole process, so chunks per second are per core. The models take turns,
and the medians of all rounds are printed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from notewell.embedding.local.models import PACKAGED_MODELS, memory_model_folder, open_local, packaged_model_file
from notewell.embedding.local.token_ids import WindowTokenizer
from notewell.errors import EmbedderError
from notewell.protocols import Embedder
from notewell.settings import LocalSettings, Settings

TOKENS = 400
CHUNKS = 16  # a round
QUERIES = ("what is the guest wifi password?", "Wo liegt der Ersatzschlüssel für den Keller?", "备用钥匙放在哪里了？")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="folders of further ONNX models")
    parser.add_argument("--rounds", type=int, default=7, help="rounds to take the median of")
    options = parser.parse_args()
    embedders = [*_packaged(), *(open_local(_settings(path=str(folder))) for folder in options.folders)]
    chunks = chunks_of(TOKENS)
    seconds: list[list[float]] = [[] for _ in embedders]
    queries: list[list[float]] = [[] for _ in embedders]
    for turn in range(options.rounds + 1):
        for number, embedder in enumerate(embedders):
            chunk_s = cpu_s(lambda embedder=embedder: embedder.embed_documents(chunks)) / len(chunks)
            query_s = cpu_s(lambda embedder=embedder: [embedder.embed_query(query) for query in QUERIES]) / len(QUERIES)
            if turn:  # the first round opens the model
                seconds[number].append(chunk_s)
                queries[number].append(query_s)
    print(table([str(embedder.identity) for embedder in embedders], seconds, queries))


def _settings(model: str = "", path: str = "") -> Settings:
    return Settings(provider="local", model=model, local=LocalSettings(model_path=path))


def _packaged() -> list[Embedder]:
    """Return the packaged models that are installed, the oldest first."""
    opened = []
    for name in reversed(PACKAGED_MODELS):
        try:
            opened.append(open_local(_settings(name)))
        except EmbedderError as error:
            print(f"{name} is left out: {error.message}")
    return opened


def chunks_of(tokens: int) -> list[str]:
    """Return English Markdown of that many tokens, cut from the documentation; both vocabularies agree on English."""
    folder = memory_model_folder()
    if folder is not None:
        content = (folder / "tokenizer.json").read_bytes()
    else:
        from notewell.embedding.local.granite import PACK_SHA256
        from notewell.embedding.local.granite_pack import load_pack

        content = load_pack(packaged_model_file(), PACK_SHA256).tokenizer_json
    tokenizer = WindowTokenizer(content, max_tokens=512)
    text = "".join(path.read_text("utf-8") for path in sorted((Path(__file__).parents[1] / "docs").glob("*.md")))
    chunks = []
    at = 0
    while len(chunks) < CHUNKS:
        length = 800
        while len(tokenizer.windows(text[at : at + length])[0]) < tokens:
            length += 8
        chunks.append(text[at : at + length])
        at += length
    return chunks


def cpu_s(work: Callable[[], object]) -> float:
    """Return the CPU time of a call, all threads together."""
    started = time.process_time()
    work()
    return time.process_time() - started


def table(names: list[str], seconds: list[list[float]], queries: list[list[float]]) -> str:
    """Return the medians, and how many times as fast as the first model each is."""
    lines = ["| model | chunks/s/core | ms a chunk | ms a query | speed |", "|---|--:|--:|--:|--:|"]
    first = statistics.median(seconds[0])
    for name, chunk_s, query_s in zip(names, seconds, queries, strict=True):
        chunk, query = statistics.median(chunk_s), statistics.median(query_s)
        lines.append(f"| {name} | {1 / chunk:.1f} | {chunk * 1e3:.1f} | {query * 1e3:.1f} | x{first / chunk:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
