"""Seed 002: promptfoo's test cases."""

from __future__ import annotations

import base64
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.seeds.support import Document, by_name, evaluate, messages, write
from tests.servers import OpenAIServer, Planned
from tui_eval.config.project import load
from tui_eval.formats import reading
from tui_eval.formats.promptfoo.read import test_sources
from tui_eval.guard.trust import Trust


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a tui_eval.yaml the current folder is the project's root."""
    monkeypatch.chdir(tmp_path)


HEAD = "prompts: ['{{%s}}']\nproviders: [echo]\n"


def project(root: Path, tests: str, prompt: str = "question", **files: str) -> None:
    """A suite whose echo provider answers with the prompt."""
    write(root, files)
    (root / "promptfooconfig.yaml").write_text(HEAD % prompt + tests, "utf-8")


def loaded(root: Path, trust: bool = False):
    suite = reading.load(root / "promptfooconfig.yaml", load([root]), Trust(granted=trust))
    assert not [str(problem) for problem in suite.problems if problem.level == "error"]
    return suite.cases


async def run(root: Path, **request: Any) -> Document:
    return await evaluate(root, **request)


async def test_inline_tests(tmp_path: Path) -> None:
    project(
        tmp_path,
        """
tests:
  - vars:
      question: 'What is the capital of France?'
    assert:
      - type: contains
        value: 'France'
  - vars:
      question: '4'
    assert:
      - type: equals
        value: '4'
""",
    )
    document = await run(tmp_path)
    assert [result["message"] for result in document["results"]] == ["passed", "passed"]


async def test_the_parts_of_a_test(tmp_path: Path) -> None:
    project(
        tmp_path,
        """
tests:
  - description: 'Optional test description'
    vars: {question: one, var2: value2}
    assert:
      - {type: contains, value: 'expected text'}
    metadata: {category: math, difficulty: easy}
""",
    )
    document = await run(tmp_path)
    result = by_name(document)["Optional test description"]
    assert result["message"] == 'Expected output to contain "expected text"'
    assert result["metadata"] == {"category": "math", "difficulty": "easy"}
    assert result["vars"] == {"question": "one", "var2": "value2"}


@pytest.mark.parametrize("tests", ["tests: file://tests.yaml\n",
                                   "tests:\n  - file://tests.yaml\n  - file://edge_cases/*.yaml\n"])  # fmt: skip
def test_external_files(tmp_path: Path, tests: str) -> None:
    one = "- vars: {question: %s}\n  assert: [{type: contains, value: a}]\n"
    project(tmp_path, tests, **{
        "tests.yaml": one % "a", "edge_cases/c.yaml": one % "c", "edge_cases/b.yaml": one % "b",
    })  # fmt: skip
    questions = [case.vars["question"] for case in loaded(tmp_path)]
    assert questions == (["a"] if "string" in tests or "edge" not in tests else ["a", "b", "c"])


def test_csv_headers_are_variables(tmp_path: Path) -> None:
    csv = 'question,expectedAnswer\n"What is 2+2?","4"\n"Who wrote Romeo and Juliet?","Shakespeare"\n'
    project(tmp_path, "tests: file://test_cases.csv\n", **{"test_cases.csv": csv})
    assert [case.vars for case in loaded(tmp_path)] == [
        {"question": "What is 2+2?", "expectedAnswer": "4"},
        {"question": "Who wrote Romeo and Juliet?", "expectedAnswer": "Shakespeare"},
    ]  # fmt: skip


async def test_csv_with_assertions(tmp_path: Path) -> None:
    csv = (
        'question,__expected\n"Hello world","contains: Hello"\n"Calculate 5 * 6","equals: 30"\n'
        '"What\'s the weather?","llm-rubric: Provides weather information"\n'
    )
    project(tmp_path, "tests: file://test_cases.csv\n", **{
        "test_cases.csv": csv, "judge.yaml": 'speed: 0\ndefault: \'{"pass": true, "score": 1, "reason": "it does"}\'\n',
        "tui_eval.yaml": "judge: {type: scripted, script: judge.yaml}\n",
    })  # fmt: skip
    document = await run(tmp_path)
    assert messages(document) == {
        "Row #1": "passed", "Row #2": 'Expected output "Calculate 5 * 6" to equal "30"', "Row #3": "passed",
    }  # fmt: skip


async def test_csv_with_several_assertions(tmp_path: Path) -> None:
    csv = 'question,__expected1,__expected2,__expected3\nfour,"equals: four","contains: ou","javascript: output.length < 10"\n'
    project(tmp_path, "tests: file://test_cases.csv\n", **{"test_cases.csv": csv})
    document = await run(tmp_path)
    (result,) = document["results"]
    assert [(item["type"], item["passed"]) for item in result["assertions"]] == [
        ("equals", True), ("contains", True), ("javascript", True),
    ]  # fmt: skip


async def test_special_csv_columns(tmp_path: Path) -> None:
    csv = (
        "question,__expected1,__expected2,__description,__prefix,__suffix,__metric,__threshold,__metadata:topic\n"
        'q,"contains: q","contains: no","Basic math test","You must answer: "," (be concise)",accuracy,0.5,math\n'
    )
    project(tmp_path, "tests: file://test_cases.csv\n", **{"test_cases.csv": csv})
    document = await run(tmp_path)
    result = by_name(document)["Basic math test"]
    assert result["details"]["response_text"] == "You must answer: q (be concise)"
    assert result["passed"] and result["score"] == 0.5, "half of it is the threshold"
    assert result["named_scores"] == {"accuracy": 0.5}
    assert {item["metric"] for item in result["assertions"]} == {"accuracy"}
    assert result["metadata"] == {"topic": "math"}


METADATA = (
    "question,__metadata:category,__metadata:difficulty,__metadata:tags[]\n"
    '"What is 2+2?","math","easy","ai,technology,data science"\n'
    '"Explain quantum physics","science","hard","environment,science,global\\,warming"\n'
)


def test_metadata_in_csv(tmp_path: Path) -> None:
    project(tmp_path, "tests: file://t.csv\n", **{"t.csv": METADATA})
    first, second = loaded(tmp_path)
    assert first.metadata == {
        "category": "math",
        "difficulty": "easy",
        "tags": ["ai", "technology", "data science"],
    }
    assert second.metadata["tags"] == ["environment", "science", "global,warming"]


@pytest.mark.parametrize(
    ("filters", "rows"),
    [
        (["category=math"], ["Row #1"]), (["difficulty=hard"], ["Row #2"]), (["tags=ai"], ["Row #1"]),
        (["tags=global,warming"], ["Row #2"]), (["category=math", "difficulty=easy"], ["Row #1"]),
    ],
)  # fmt: skip
async def test_filters_by_metadata(tmp_path: Path, filters: list[str], rows: list[str]) -> None:
    project(tmp_path, "tests: file://t.csv\n", **{"t.csv": METADATA})
    document = await run(tmp_path, filter_metadata=filters)
    assert [result["name"] for result in document["results"]] == rows


async def test_json_in_csv(tmp_path: Path) -> None:
    csv = (
        'query,context,__expected\n"What\'s the temperature?",'
        '"{""location"":""NYC"",""units"":""celsius""}","contains: NYC"\n'
    )
    config = (
        "prompts:\n  - 'Query: {{query}}, Location: {{(context | load).location}}'\nproviders: [echo]\n"
        "tests: file://test_cases.csv\n"
    )
    write(tmp_path, {"test_cases.csv": csv, "promptfooconfig.yaml": config})
    (result,) = (await run(tmp_path))["results"]
    assert result["details"]["response_text"] == "Query: What's the temperature?, Location: NYC"
    assert result["passed"]


PYTHON = """
def create_tests(config=None):
    size = (config or {}).get("sample_size", 2)
    print("made in", (config or {}).get("dataset", "train"))
    return [{"vars": {"question": f"q{i}"}, "assert": [{"type": "contains", "value": str(i)}]} for i in range(size)]
"""


@pytest.mark.parametrize(
    ("tests", "count"),
    [
        ("tests: file://generate_tests.py:create_tests\n", 2),
        (
            "tests:\n  - path: file://generate_tests.py:create_tests\n    config: {dataset: validation, sample_size: 3}\n",
            3,
        ),
    ],
)
async def test_python_generators(tmp_path: Path, tests: str, count: int) -> None:
    project(tmp_path, tests, **{"generate_tests.py": PYTHON})
    document = await run(tmp_path, trust=True)
    assert [result["passed"] for result in document["results"]] == [True] * count


JAVASCRIPT = """
module.exports = async function (config) {
  const testCases = [];
  for (let i = 1; i <= ((config || {}).count || 10); i++) {
    testCases.push({
      description: `Test case ${i}`,
      vars: { number: i, question: `${i * i}` },
      assert: [{ type: 'contains', value: String(i * i) }],
    });
  }
  return testCases;
};
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="JavaScript files with exports run in node")
@pytest.mark.parametrize(
    ("tests", "count"),
    [
        ("tests: file://generate_tests.js\n", 10),
        ("tests:\n  - path: file://generate_tests.js\n    config: {count: 3}\n", 3),
    ],
)
async def test_javascript_generators(tmp_path: Path, tests: str, count: int) -> None:
    project(tmp_path, tests, **{"generate_tests.js": JAVASCRIPT})
    document = await run(tmp_path, trust=True)
    assert messages(document) == {f"Test case {number}": "passed" for number in range(1, count + 1)}


async def test_videos_become_base64(tmp_path: Path) -> None:
    (tmp_path / "clip.mp4").write_bytes(b"not really a film")
    project(tmp_path, "tests:\n  - vars: {question: file://clip.mp4}\n")
    (result,) = (await run(tmp_path))["results"]
    assert base64.b64encode(b"not really a film").decode() in result["details"]["response_text"]


async def test_a_json_array(tmp_path: Path) -> None:
    data = (
        '[{"vars": {"question": "artificial intelligence AI"}, "assert": [{"type": "contains", "value": "AI"}]},'
        ' {"vars": {"question": "climate change"}, "assert": [{"type": "contains", "value": "AI"}]}]'
    )
    project(tmp_path, "tests: file://tests.json\n", **{"tests.json": data})
    assert [result["passed"] for result in (await run(tmp_path))["results"]] == [True, False]


async def test_jsonl(tmp_path: Path) -> None:
    lines = (
        '{"vars": {"question": "8", "x": 5, "y": 3}, "assert": [{"type": "equals", "value": "8"}]}\n'
        '{"vars": {"question": "13", "x": 10}, "assert": [{"type": "equals", "value": "17"}]}\n'
    )
    project(tmp_path, "tests: file://tests.jsonl\n", **{"tests.jsonl": lines})
    assert [result["passed"] for result in (await run(tmp_path))["results"]] == [True, False]


async def test_files_as_variables(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("a note")
    (tmp_path / "data.yaml").write_text("region: north\nsizes: [1, 2]\n")
    config = (
        "prompts: ['{{notes}} | {{data.region}} | {{data.sizes.length}}']\nproviders: [echo]\n"
        "tests:\n  - vars: {notes: file://notes.txt, data: file://data.yaml}\n"
        "    assert: [{type: equals, value: 'a note | north | 2'}]\n"
    )
    write(tmp_path, {"promptfooconfig.yaml": config})
    assert [result["message"] for result in (await run(tmp_path))["results"]] == ["passed"]


def pdf_of(text: str) -> bytes:
    """A PDF of one page with this text."""
    content = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET"
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        f"<</Length {len(content)}>>stream\n{content}\nendstream",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    body, places = "%PDF-1.4\n", []
    for number, item in enumerate(objects, 1):
        places.append(f"{len(body):010} 00000 n \n")
        body += f"{number} 0 obj{item}endobj\n"
    table = f"xref\n0 6\n0000000000 65535 f \n{''.join(places)}"
    return f"{body}{table}trailer<</Root 1 0 R/Size 6>>\nstartxref\n{len(body)}\n%%EOF\n".encode()


async def test_pdfs_become_text(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    (tmp_path / "report.pdf").write_bytes(pdf_of("Quarterly report"))
    project(tmp_path, "tests:\n  - vars: {question: file://report.pdf}\n")
    (result,) = (await run(tmp_path))["results"]
    assert "Quarterly report" in result["details"]["response_text"]


async def test_images_reach_a_vision_model_once_prefixed(tmp_path: Path) -> None:
    picture = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    (tmp_path / "test_image.png").write_bytes(picture)
    prompt = (
        '[{"role": "user", "content": [{"type": "text", "text": "{{question}}"}, {"type": "image_url", '
        '"image_url": {"url": "data:image/png;base64,{{image}}"}}]}]'
    )
    with OpenAIServer(Planned(text="a dog")) as server:
        write(tmp_path, {
            "prompt.json": prompt,
            "promptfooconfig.yaml": f"""
                prompts: [file://prompt.json]
                providers: [{{id: "openai:chat:vision", config: {{apiBaseUrl: "{server.base}", apiKey: none}}}}]
                tests:
                  - vars: {{image: file://test_image.png, question: 'What objects are in this image?'}}
                    assert: [{{type: contains, value: dog}}]
            """,
        })  # fmt: skip
        (result,) = (await run(tmp_path))["results"]
        (message,) = server.requests[-1].body["messages"]
    assert result["passed"], result["message"]
    text, image = message["content"]
    assert text["text"] == "What objects are in this image?"
    url = image["image_url"]["url"]
    assert url.count("base64,") == 1 and base64.b64decode(url.partition("base64,")[2]) == picture


class Sheet(BaseHTTPRequestHandler):
    """A sheet as Google exports it."""

    def do_GET(self) -> None:
        self.server.asked = self.path  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Type", "text/csv")
        self.end_headers()
        self.wfile.write(b"question,__expected\nfour,equals: four\nfive,equals: four\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing is printed."""


async def test_google_sheets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Sheet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(test_sources, "GOOGLE", f"http://127.0.0.1:{server.server_port}")
    try:
        project(tmp_path, "tests: https://docs.google.com/spreadsheets/d/abc123/edit?gid=7#gid=7\n")
        document = await run(tmp_path, trust=True)
    finally:
        server.shutdown()
        server.server_close()
    assert [result["passed"] for result in document["results"]] == [True, False]
    assert "/spreadsheets/d/abc123/export?format=csv" in server.asked and "gid=7" in server.asked  # type: ignore[attr-defined]


async def test_approaches_are_combined(tmp_path: Path) -> None:
    project(
        tmp_path,
        """
tests:
  - vars: {question: 'quick check'}
    assert: [{type: contains, value: quick}]
  - file://tests/full_suite.csv
""",
        **{"tests/full_suite.csv": "question,__expected\na,equals: a\n"},
    )
    assert [result["passed"] for result in (await run(tmp_path))["results"]] == [True, True]


async def test_variables_for_a_b_testing(tmp_path: Path) -> None:
    csv = (
        'message_style,question,__expected\n"formal","Good morning","contains: Good morning"\n'
        '"casual","Hey there","contains: Hey"\n"friendly","Hello!","contains: Hello"\n'
    )
    project(tmp_path, "tests: file://ab_tests.csv\n", **{"ab_tests.csv": csv})
    document = await run(tmp_path)
    assert [result["vars"]["message_style"] for result in document["results"]] == [
        "formal",
        "casual",
        "friendly",
    ]
    assert all(result["passed"] for result in document["results"])


async def test_empty_input(tmp_path: Path) -> None:
    write(tmp_path, {
        "promptfooconfig.yaml": """
            prompts: ['Q: {{input}}']
            providers: [helper]
            tests:
              - description: 'Handle empty input'
                vars: {input: ''}
                assert: [{type: contains, value: 'provide more information'}]
        """,
        "tui_eval.yaml": "agents: {helper: {type: scripted, script: s.yaml}}\n",
        "s.yaml": "speed: 0\nrules:\n  - {match: {regex: '^Q: ?$'}, say: Please provide more information.}\n",
    })  # fmt: skip
    assert messages(await run(tmp_path)) == {"Handle empty input": "passed"}


@pytest.mark.parametrize(("wait", "passed"), [(0, True), (0.4, False)])
async def test_latency(tmp_path: Path, wait: float, passed: bool) -> None:
    write(tmp_path, {
        "promptfooconfig.yaml": """
            prompts: ['{{prompt}}']
            providers: [helper]
            tests:
              - vars: {prompt: 'Simple question'}
                assert: [{type: latency, threshold: 300}]
        """,
        "tui_eval.yaml": "agents: {helper: {type: scripted, script: s.yaml}}\n",
        "s.yaml": f"default: {{steps: [{{wait: {wait}}}, {{say: ok}}]}}\n",
    })  # fmt: skip
    (result,) = (await run(tmp_path))["results"]
    assert result["passed"] == passed, result["message"]
