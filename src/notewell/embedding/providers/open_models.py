"""Open models that many servers offer: a name in any of its spellings comes in, what the model wants goes out.

Ollama, LM Studio, vLLM and llama-server all leave the prefixes that a model was trained with to their clients.
"""

from __future__ import annotations

from notewell.embedding.providers.api import Model

# From the models' own cards: dimensions, context, and the words before queries and documents.
OPEN_MODELS: dict[str, Model] = {
    "nomic-embed-text": Model(768, 2048, "search_query: ", "search_document: ", english_only=True),
    "mxbai-embed-large": Model(
        1024, 512, "Represent this sentence for searching relevant passages: ", english_only=True
    ),
    "all-minilm": Model(384, 256, english_only=True),
    "bge-m3": Model(1024, 8192),
    "snowflake-arctic-embed2": Model(1024, 8192, "query: "),
    "embeddinggemma": Model(768, 2048, "task: search result | query: ", "title: none | text: "),
}


def open_model_name(name: str) -> str:
    """Return the entry of `OPEN_MODELS` that a server's name for a model means, or the name as it is.

    `nomic-embed-text:v1.5`, `text-embedding-nomic-embed-text-v1.5@q8_0` and `nomic-ai/nomic-embed-text-v1.5` are one
    model; names that continue with another word, such as `nomic-embed-text-v2-moe`, are not.
    """
    plain = name.lower().rpartition("/")[2].partition("@")[0].partition(":")[0].removeprefix("text-embedding-")
    plain = plain.removesuffix("-gguf")
    for ending in ("-v1.5", "-v1", "-300m", "-l6-v2"):
        plain = plain.removesuffix(ending)
    return plain if plain in OPEN_MODELS else name
