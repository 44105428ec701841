"""Every valid way to mark a note as private, and what is no mark."""

from __future__ import annotations

import json
import time

import pytest

from notewell import Memory
from notewell.sources.privacy import marked_private

LONG = "".join(f"key{number}: value\n" for number in range(20_000))

PRIVATE = {
    "a line": "---\nprivate: true\n---\n",
    "yes": "---\nprivate: yes\n---\n",
    "on, in capitals": "---\nPRIVATE: ON\n---\n",
    "one": "---\nprivate: 1\n---\n",
    "quoted key": '---\n"private": true\n---\n',
    "single-quoted key": "---\n'private': true\n---\n",
    "an escape in the key": '---\n"priv\\u0061te": true\n---\n',
    "a short escape": '---\n"\\x70rivate": true\n---\n',
    "a key over two lines": '---\n? "pri\\\n  vate"\n: true\n---\n',
    "quoted value": "---\nprivate: 'true'\n---\n",
    "flow map": "---\n{title: x, private: true}\n---\n",
    "flow map over lines": "---\n{\n  title: x,\n  private: true,\n}\n---\n",
    "flow map on the first line": "--- {private: true}\n---\n",
    "tagged value": '---\nprivate: !!bool "true"\n---\n',
    "tagged key": "---\n!!str private: true\n---\n",
    "tag of somebody's own": "---\nprivate: !yes true\n---\n",
    "tagged document": "--- !!map\nprivate: true\n---\n",
    "anchored value": "---\ndefault: &d true\nprivate: *d\n---\n",
    "anchored key": "---\nfield: &k private\n*k : true\n---\n",
    "merged": "---\nbase: &b\n  private: true\n<<: *b\n---\n",
    "explicit key": "---\n? private\n: true\n---\n",
    "explicit key, quoted": '---\n? "private"\n: yes\n---\n',
    "blanks around the colon": "---\nprivate  :   true   # for me\n---\n",
    "value on the next line": "---\nprivate:\n  true\n---\n",
    "block scalar": "---\nprivate: |\n  true\n---\n",
    "inside another key": "---\nnote:\n  private: true\n---\n",
    "in a list": "---\n- title: x\n- private: true\n---\n",
    "given twice, yes first": "---\nprivate: true\nprivate: false\n---\n",
    "given twice, yes last": "---\nprivate: false\nprivate: true\n---\n",
    "with a tag that nobody knows, in what is never closed": "---\nprivate: !!bool true\n\nText that goes on.\n",
    "flow map, never closed": "---\n{title: x, private: true}\n\nText that goes on.\n",
    "explicit key, never closed": "---\n? private\n: true\n\nText that goes on.\n",
    "on the next line, never closed": "---\nprivate:\n  true\n\nText that goes on.\n",
    "no blank after the colon": "---\nprivate:true\n---\n",
    "written as in TOML": "---\nprivate = true\n---\n",
    "wide letters": "---\nｐｒｉｖａｔｅ： true\n---\n",
    "a character in the key that nobody sees": "---\npri\u200bvate: true\n---\n",
    "a no-break space before": "\u00a0\n---\nprivate: true\n---\n",
    "a wide blank before": "\u3000\n---\nprivate: true\n---\n",
    "a word joiner before": "\u2060---\nprivate: true\n---\n",
    "a mark of direction before": "\u200e---\nprivate: true\n---\n",
    "a comment of HTML before": "<!-- markdownlint-disable -->\n\n---\nprivate: true\n---\n",
    "in a comment of HTML": "<!-- private: true -->\n",
    "in a comment of HTML, on lines of its own": "<!--\n---\nprivate: true\n---\n-->\n",
    "a block with nothing but a comment before": "---\n# settings\n---\nprivate: true\n---\n",
    "visibility, a list": "---\nvisibility: [team, private]\n---\n",
    "visibility, list items": "---\nvisibility:\n  - team\n  - private\n---\n",
    "visibility": "---\nvisibility: private\n---\n",
    "visibility, quoted": "---\nVisibility: 'Private'\n---\n",
    "closed by dots": "---\nprivate: true\n...\n",
    "blank lines before": "\n\n  \n---\nprivate: true\n---\n",
    "a byte order mark before": "\ufeff---\nprivate: true\n---\n",
    "a directive before": "%YAML 1.2\n---\nprivate: true\n---\n",
    "a comment on the first line": "--- # mine\nprivate: true\n---\n",
    "an empty block before": "---\n---\nprivate: true\n---\n",
    "blanks after the dashes": "---   \nprivate: true\n---  \n",
    "after 20,000 lines": f"---\n{LONG}private: true\n---\n",
    "before 20,000 lines": f"---\nprivate: true\n{LONG}---\n",
    "flow map after 20,000 lines": f"---\n{LONG}? private\n: true\n---\n",
    "never closed": "---\ntitle: x\nprivate: true\n\nText that goes on.\n",
    "not valid": "---\nprivate: true\n  bad: [\n---\n",
    "prose between": "---\nsome prose that is no front matter\nprivate: true\n---\n",
    "a value nobody knows": "---\nprivate: perhaps\n---\n",
    "no value": "---\nprivate:\n---\n",
    "too deep to look": f"---\nprivate: true\nx: {'[' * 60_000}\n---\n",
    "TOML": "+++\nprivate = true\n+++\n",
    "TOML, quoted key": '+++\n"private" = true\n+++\n',
    "TOML, an escape": '+++\n"priv\\u0061te" = true\n+++\n',
    "TOML, as text": '+++\nprivate = "yes"\n+++\n',
    "TOML table": "+++\n[extra]\nprivate = true\n+++\n",
    "TOML inline table": "+++\nextra = {private = true}\n+++\n",
    "TOML dotted": "+++\nextra.private = true\n+++\n",
    "TOML visibility": '+++\nvisibility = "private"\n+++\n',
    "TOML with a mistake": "+++\nprivate = true\nx =\n+++\n",
    "TOML after blank lines": "\n\n+++\nprivate = true\n+++\n",
    "YAML by name": "---yaml\nprivate: true\n---\n",
    "YAML by name, in capitals": "---YAML\nprivate: true\n---\n",
    "TOML by name, in capitals": "---TOML\nprivate = true\n---\n",
    "TOML by name": "---toml\nprivate = true\n---\n",
    "JSON": '{"private": true}\n\n',
    "JSON over lines": '{\n  "title": "x",\n  "private": true\n}\n',
    "JSON, an escape": '{"priv\\u0061te": true}\n',
    "JSON, inside": '{"extra": {"private": "yes"}}\n',
    "JSON given twice": '{"private": true, "private": false}\n',
    "JSON with a mistake": '{"private": true,}\n',
    "JSON by name": '---json\n{"private": true}\n---\n',
    "JSON between semicolons": ';;;\n"private": true\n;;;\n',
    "JSON after blank lines": '\n\n{"private": true}\n',
}
PUBLIC = {
    "nothing": "",
    "no front matter": "We keep this private: true friends know.\n",
    "false": "---\nprivate: false\n---\n",
    "no": "---\nprivate: no\n---\n",
    "off, quoted": "---\nprivate: 'off'\n---\n",
    "zero": "---\nprivate: 0\n---\n",
    "anchored no": "---\nd: &d false\nprivate: *d\n---\n",
    "no, by name": "---yaml\nprivate: no\n---\n",
    "no, after an empty block": "---\n---\nprivate: no\n---\n",
    "a title about it": "---\ntitle: private matters\n---\n",
    "a tag": "---\ntags: [private, work]\n---\n",
    "a similar key": "---\nprivate_key_file: x\nprivateer: true\n---\n",
    "visible": "---\nvisibility: public\n---\n",
    "in the body": "---\ntitle: x\n---\nprivate: true\n",
    "in the body after blank lines": "\n\nText\n\n---\nprivate: true\n---\n",
    "a heading underlined": "-----\nprivate: true\n-----\n",
    "TOML no": "+++\nprivate = false\n+++\n",
    "JSON no": '{"private": false}\n',
    "a comment of HTML that speaks of it": "<!-- is this private? true enough -->\n",
    "prose after a comment of HTML": "<!-- draft -->\nA private matter: true.\n",
    "a heading between breaks": "---\n# Private matters\n---\nThey are true.\n",
    "visibility of others": "---\nvisibility:\n  - team\n  - public\n---\n",
    "a template": "{{ title }} is not private\n",
    "prose between breaks": "---\nA thematic break, and prose about private things.\n\n---\n\nMore.\n",
}


@pytest.mark.parametrize("front", [pytest.param(front, id=name) for name, front in PRIVATE.items()])
def test_a_mark_counts_however_it_is_written(front):
    assert marked_private(f"{front}# Note\n")


@pytest.mark.parametrize("front", [pytest.param(front, id=name) for name, front in PUBLIC.items()])
def test_what_is_no_mark_hides_nothing(front):
    assert not marked_private(f"{front}# Note\n")


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["a line", "flow map", "explicit key", "TOML", "JSON over lines"])
def test_a_group_neither_finds_nor_reads_a_marked_note(tmp_path, name, encoding, newline):
    (tmp_path / "memory").mkdir()
    text = f"{PRIVATE[name]}the harbour\n".replace("\n", newline)
    (tmp_path / "memory" / "note.md").write_bytes(text.encode(encoding))
    with Memory.open(tmp_path, provider="none") as memory:
        assert memory.search("harbour").hits
        group = memory.seen_by(chat="group")
        assert not group.search("harbour").hits
        assert group.files() == ()


@pytest.mark.parametrize(
    "front",
    [
        pytest.param(f"---\n{LONG * 10}private: true\n---\n", id="many keys"),
        pytest.param(f"---\nprivate: true\nx: {'{a: ' * 400_000}\n---\n", id="deep"),
        pytest.param(f"---\n{'- ' * 500_000}private\n---\n", id="deep lists"),
        pytest.param("---\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 50_000)) + "---\n", id="aliases"),
        pytest.param(f"+++\nprivate = false\n{'a.' * 31_000}b = 1\n+++\n", id="TOML key of many parts"),
        pytest.param('{"a":' * 300_000 + '"private"', id="deep objects"),
        pytest.param("---\n" * 500_000 + "private: true\n", id="only dashes"),
    ],
)
def test_no_front_matter_takes_long(front):
    started = time.perf_counter()
    marked_private(front)
    assert time.perf_counter() - started < 2


@pytest.mark.slow
def test_a_note_without_a_mark_does_not_load_the_yaml_parser(run_python):
    script = (
        "import sys; from notewell.sources.privacy import marked_private as marked;"
        "marked('---\\ntitle: x\\ntags: [a, b]\\n---\\ntext'); print('yaml' in sys.modules)"
    )
    assert json.loads(run_python(script).lower()) is False


@pytest.fixture
def run_python():
    import subprocess
    import sys

    return lambda script: (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    )
