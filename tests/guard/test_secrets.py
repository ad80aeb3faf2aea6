"""Which values are secrets, and that none of them gets through."""

from __future__ import annotations

import base64
import html
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_eval.guard.crash_report import crash_line
from tui_eval.guard.masker import Masker, forms
from tui_eval.guard.secrets import (
    MASK,
    in_addresses,
    in_command,
    in_pairs,
    in_words,
    secret_name,
    secret_values,
)
from tui_eval.model import Attempt, Entry, Exchange


@pytest.mark.parametrize(
    "name",
    [
        "api_key",
        "apiKey",
        "X-Api-Key",
        "OPENAI_API_KEY",
        "key",
        "token",
        "accessToken",
        "client_secret",
        "password",
        "PGPASSWORD",
        "Authorization",
        "Proxy-Authorization",
        "AWS_SECRET_ACCESS_KEY",
        "apikey",
        "passwd",
        "credentials",
        "DB_PASS",
        "DBPASS",
        "smtpPass",
        "MYSQL_PWD",
        "CREDENTIALS",
    ],
)
def test_secret_names(name: str) -> None:
    assert secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "keywords",
        "keyboard",
        "monkey",
        "tokens",
        "max_tokens",
        "tokenizer",
        "name",
        "",
        "api_key_env",
        "KEY_FILE",
        "pass_rate",
        "BYPASS",
        "compass",
        "session",
        "cookies_accepted",
    ],
)
def test_names_of_no_secrets(name: str) -> None:
    assert not secret_name(name)


def test_values_found() -> None:
    basic = base64.b64encode(b"user:correct horse").decode()
    values = secret_values(
        {
            "headers": {"Authorization": "Bearer abcdefgh1", "X-Team": "evaluations"},
            "login": {"authorization": f"Basic {basic}"},
            "url": "postgres://me:p%40ssword1@host/db?sslkey=zzzzzzzz9",
            "short_key": "1234567",
            "api_key": "${OPENAI_API_KEY}",
            "keys": ["listed-key-1"],
            "password": 1234567890,
            "tokens": "not a secret",
        }
    )
    assert set(values) == {
        "Bearer abcdefgh1", "abcdefgh1", f"Basic {basic}", basic, "user:correct horse", "correct horse",
        "p@ssword1", "zzzzzzzz9", "listed-key-1", "1234567890",
    }  # fmt: skip


SECRET = 'pä"ss/w\\rd+1\n&'


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        json.dumps({"a": SECRET}),
        json.dumps({"a": SECRET}, ensure_ascii=False),
        f"https://host/?k={quote(SECRET)}",
        f"https://host/?k={quote(SECRET, safe='')}",
        base64.b64encode(SECRET.encode()).decode(),
        base64.b64encode(b"user:" + SECRET.encode()).decode(),
        base64.b64encode(b"a:" + SECRET.encode() + b":z").decode(),
        base64.urlsafe_b64encode(b"me:" + SECRET.encode()).decode(),
        repr({"a": SECRET}),
    ],
)
def test_every_form_is_masked(written: str) -> None:
    masked = Masker([SECRET]).text(f"before {written} after")
    assert MASK in masked and masked.startswith("before ") and masked.endswith(" after")
    assert "ss/w" not in masked and "ss%2Fw" not in masked


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        html.escape(SECRET),
        json.dumps(SECRET),
        json.dumps(json.dumps(SECRET)),
        repr(SECRET),
        quote(quote(SECRET, safe=""), safe=""),
    ],
)
def test_every_form_is_masked_in_a_record_which_is_json_itself(written: str) -> None:
    body = json.dumps({"text": written}, ensure_ascii=False)
    text = json.loads(Masker([SECRET]).text(body))["text"]
    assert MASK in text and "w" not in text


def test_a_cookie_is_masked_without_its_name_too() -> None:
    values = secret_values({"Cookie": "lang=en; sid=s3cret-of-a-session; theme=dark"})
    assert Masker(values).text("sid is s3cret-of-a-session, theme dark") == f"sid is {MASK}, theme dark"
    assert secret_values({"api_key": "aGVsbG8gd29ybGQ="}) == ["aGVsbG8gd29ybGQ="]


def test_longest_first_and_short_ones_left_out() -> None:
    masker = Masker(["abcdefgh", "abcdefghijkl", "abc"])
    assert masker.text("abc abcdefgh abcdefghijkl") == f"abc {MASK} {MASK}"
    masker.add("later-secret")
    masker.add_values({"token": "header-token"})
    assert masker.text("later-secret header-token") == f"{MASK} {MASK}"
    assert not Masker() and Masker(["abcdefgh"])


@pytest.mark.parametrize(
    ("cut", "shown"),
    [
        ("token=sk-live-01…", f"token={MASK}…"),
        ("q=sk-live-0123456… and so on", f"q={MASK}… and so on"),
        ("…ef/+= is the end", f"…{MASK} is the end"),
        ("…3456789abcdef/+= … sk-l…", f"…{MASK} … {MASK}…"),
        ("sk-live-sk-live-01…", f"sk-live-{MASK}…"),
        ("no sk… of it, asked…", "no sk… of it, asked…"),
        ("sk-live- is a beginning that everybody has, …", "sk-live- is a beginning that everybody has, …"),
    ],
)
def test_what_is_left_of_a_secret_beside_a_cut_is_masked(cut: str, shown: str) -> None:
    masker = Masker(["sk-live-0123456789abcdef/+="])
    assert masker.text(cut) == shown
    assert masker.text(shown) == shown


@given(st.text('ab… "', max_size=12), st.integers(4, 19), st.text('ab… "', max_size=12))
def test_a_text_that_is_cut_anywhere_in_a_secret_keeps_four_characters_at_most(
    before: str, at: int, after: str
) -> None:
    secret = "tok_9f8e7d6c5b4a3210"
    for told in (f"{before}{secret[:at]}…{after}", f"{before}…{secret[-at:]}{after}"):
        masked = Masker([secret]).text(told)
        assert not any(secret[n : n + 4] in masked for n in range(len(secret) - 3))


def test_what_stands_before_a_short_secret_is_no_part_of_it() -> None:
    masker = Masker()
    masker.add_typed({"password": "abc"})
    assert masker.text("the password: …") == "the password: …"


def test_values_of_any_shape() -> None:
    masker = Masker(["sk-12345678"])
    attempt = Attempt(
        "c", 1, "passed",
        transcript=[Entry(1, "user", text="hello sk-12345678", arguments={"a": ["sk-12345678", 1, None]})],
        exchanges=[Exchange(1, "Authorization: Bearer sk-12345678")],
        vars={"sk-12345678": ("x", "sk-12345678")},
    )  # fmt: skip
    masked = masker.value(attempt)
    assert "sk-12345678" not in repr(masked) and repr(masked).count(MASK) == 5
    assert "sk-12345678" in attempt.transcript[0].text
    clean = Attempt("c", 1, "passed", transcript=[Entry(1, "user", text="hello")])
    assert masker.value(clean) is clean
    assert Masker(["1234567890"]).value({"a": 1234567890, "b": 1}) == {"a": MASK, "b": 1}


@given(st.lists(st.text("ab-", min_size=0, max_size=12), max_size=20))
def test_a_stream_in_pieces_masks_as_a_whole(pieces: list[str]) -> None:
    masker = Masker(["ab-ab-ab-", "bbbbaaaa"])
    stream = masker.stream()
    shown = "".join(stream.feed(piece) for piece in pieces) + stream.flush()
    whole = "".join(pieces)
    assert "ab-ab-ab-" not in shown and "bbbbaaaa" not in shown
    assert shown.replace(MASK, "") == masker.text(whole).replace(MASK, "")


def test_a_stream_holds_back_no_more_than_needed() -> None:
    stream = Masker(["sk-secret-1"]).stream()
    assert stream.feed("hello sk-") == "hello "
    assert stream.feed("sec") == ""
    assert stream.feed("ret-1 bye") == f"{MASK} bye"
    assert stream.flush() == ""


def test_the_shells_working_folders_are_no_secrets() -> None:
    assert secret_values({"PWD": "/home/ada/project", "OLDPWD": "/home/ada", "DB_PWD": "hunter2hunter2"}) == [
        "hunter2hunter2"
    ]


def test_names_that_are_likely_ones_hold_secrets_where_the_value_looks_like_one() -> None:
    secrets = {
        "JWT": "eyJhbGciOiJIUzI1NiJ9.e30.x", "COOKIE": "sid=8f3a9c21", "SESSION": "a8f3c9d2e1", "NPM_AUTH": "bmVsbDo4",
    }  # fmt: skip
    assert set(secret_values(secrets)) == {
        *secrets.values(),
        "8f3a9c21",
    }  # a cookie is one without its name, too
    plain = {
        "DESKTOP_SESSION": "ubuntu-22.04", "SESSION": "evaluation", "NPM_AUTH": "required", "XDG_SESSION_ID": "1234567890",
        "COOKIE": "/etc/cookie1", "PASS": "1", "DB_PASS": "true", "auth_type": "bearer12345", "session": 1234567890,
        "auth": {"grantType": "client_credentials2"},
    }  # fmt: skip
    assert secret_values(plain) == []


def test_addresses_keep_their_passwords_and_tokens_for_themselves_however_short() -> None:
    assert in_addresses("ask http://me:pw@host:80/a?token=t&x=1#access_token=q") == (
        f"ask http://me:{MASK}@host:80/a?token={MASK}&x=1#access_token={MASK}"
    )
    for ends in (": gone", ", twice", ")"):  # they are the sentence's
        assert in_addresses(f"http://h/x?token=t{ends}") == f"http://h/x?token={MASK}{ends}"
    assert in_addresses("postgres://u:p@ss:w@h/d") == f"postgres://u:{MASK}@h/d"
    assert in_addresses("https://ghp_0123456789abcdef@host/r") == f"https://{MASK}@host/r"
    for same in (
        "http://host:8000/chat",
        "http://me@host/?page=1",
        "http://me:${PW}@host/?key={{key}}",
        "a:b@c?token=x",
    ):
        assert in_addresses(same) == same


def test_what_is_typed_is_masked_by_its_name_and_plain_words_are_not() -> None:
    assert in_pairs({"api_token": "1", "city": "Rome", "max_tokens": "100", "jwt": "short"}) == {
        "api_token": MASK, "city": "Rome", "max_tokens": "100", "jwt": "short",
    }  # fmt: skip
    words = ["run", "--var", "api_token=a b", "--var=db_pass=x", "--agent=http://a:b@h", "--var", "city=Rome"]
    assert in_words(words) == [
        "run", "--var", f"api_token={MASK}", f"--var=db_pass={MASK}", f"--agent=http://a:{MASK}@h", "--var", "city=Rome",
    ]  # fmt: skip


def test_what_signs_an_address_and_a_code_that_is_a_key_are_masked_in_it() -> None:
    key = "v8Ea+Zk1/o2Qx7s9_LmNpA=="
    address = (
        f"https://h/a?sv=2024&sig={key}&X-Amz-Signature=0a1b&code={key}&x-goog-signature=f&country_code=US"
    )
    assert in_addresses(address) == (
        f"https://h/a?sv=2024&sig={MASK}&X-Amz-Signature={MASK}&code={MASK}&x-goog-signature={MASK}&country_code=US"
    )
    for same in (
        "http://h/?code=404",
        "http://h/?code=US&design=x&sigma=1",
        "http://h/?code=20240110",
        "sig=1",
    ):
        assert in_addresses(same) == same
        assert secret_values({"url": same}) == []
    masker = Masker(secret_values({"url": address}))
    assert masker.text(f"got {key} and v8Ea%2BZk1/o2Qx7s9_LmNpA%3D%3D") == f"got {MASK} and {MASK}"


def test_a_short_password_of_an_address_is_masked_with_its_user_as_it_is_sent() -> None:
    masker = Masker(secret_values({"url": "http://anna:pw1@host/?token=t1"}))
    sent = base64.b64encode(b"anna:pw1").decode()
    masked = masker.text(f"Basic {sent} anna:pw1 token=t1")
    assert (
        masked.startswith(f"Basic {MASK}") and sent[:-2] not in masked and masked.endswith(f" {MASK} {MASK}")
    )
    assert masker.text("pw1 t1 anna host") == "pw1 t1 anna host"


def test_a_short_variable_is_masked_beside_its_name_however_deep_and_nowhere_else() -> None:
    masker = Masker()
    masker.add_typed({"password": "w9", "API_TOKEN": "abc", "name": "Bob"})
    deep = {"a": [{"login": {"password": "w9", "of": "w9"}}], "password": ["w9", "x"], "API_TOKEN": "abcd"}
    assert masker.value(deep) == {
        "a": [{"login": {"password": MASK, "of": "w9"}}], "password": [MASK, "x"], "API_TOKEN": "abcd",
    }  # fmt: skip
    assert masker.value({"password": 5, "n": 1}) == {"password": 5, "n": 1}
    once = json.dumps({"password": "w9", "name": "Bob"})
    for text in (
        once,
        json.dumps({"in": once}),
        repr({"password": "w9"}),
        "password: w9",
        'password="w9"',
        "?password=w9&b=1",
    ):
        shown = masker.text(text)
        assert "w9" not in shown and "password" in shown and MASK in shown, shown
    assert json.loads(masker.text(once)) == {"password": MASK, "name": "Bob"}
    assert masker.text("w9 of abc and Bob") == "w9 of abc and Bob"
    stream = masker.stream()
    assert "w9" not in stream.feed("its pass") + stream.feed("word: w") + stream.feed("9.") + stream.flush()


@pytest.mark.parametrize("kind", ["utf-8", "utf-16-le", "utf-16-be"])
def test_a_secret_is_found_in_the_bytes_of_a_file(kind: str) -> None:
    masker = Masker(["sk-0123456789"])
    assert masker.stands_in(b"\0\xff" + "x sk-0123456789 y".encode(kind) + b"\0")
    assert not masker.stands_in("x sk-01234567 y".encode(kind))
    masker.add("another-secret")
    assert masker.stands_in("another-secret".encode(kind))


@pytest.mark.parametrize(
    "written",
    [
        r"Q1w2\u002Be3R4/t5\u003CY6\u0026u7=I8o9P0",
        r"Q1w2+e3R4/t5\u003cY6\u0026u7=I8o9P0",
        r"Q1w2+e3R4/t5\u003cY6\u0026u7\u003dI8o9P0",
        r"Q1w2+e3R4\/t5<Y6&u7=I8o9P0",
        "Q1w2+e3R4/t5&lt;Y6&amp;u7=I8o9P0",
        "Q1w2%2be3R4%2ft5%3cY6%26u7%3dI8o9P0",
        "Q1w2%2Be3R4%2Ft5%3CY6%26u7%3DI8o9P0",
    ],
    ids=[".NET", "Go", "Gson", "PHP", "HTML", "URL, small letters", "URL"],
)
def test_a_secret_is_masked_as_other_languages_write_it(written: str) -> None:
    masker = Masker(["Q1w2+e3R4/t5<Y6&u7=I8o9P0"])
    assert masker.text(f"key {written}.") == "key •••."
    assert masker.text(json.dumps({"key": written})) == '{"key": "•••"}'
    stream = masker.stream()
    assert "".join([*map(stream.feed, f"key {written}."), stream.flush()]) == "key •••."


PEM = (
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n"
    "MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu\n-----END PRIVATE KEY-----\n"
)


@pytest.mark.parametrize(
    "variables",
    [
        {"SIGNING_KEY": PEM},
        {"SIGNING_KEY": PEM.replace("\n", "\\n")},
        {"GOOGLE_CREDENTIALS": json.dumps({"type": "service_account", "private_key": PEM})},
        {"ACCOUNT": json.dumps({"type": "service_account", "private_key": PEM}, indent=1)},
    ],
    ids=["of lines", "in one line", "in a document", "in a document of a plain name"],
)
def test_a_key_of_several_lines_is_masked_line_by_line(variables: dict[str, str]) -> None:
    """Only the whole was, as it stands in the variable: not with other line ends, indented, or a line of it."""
    masker = Masker(secret_values(variables))
    first, *_, last = PEM.splitlines()
    for written in (PEM.replace("\n", "\r\n"), PEM.replace("\n", "\n  "), PEM.splitlines()[1]):
        assert "MII" not in masker.text(written) and "YEvu" not in masker.text(written)
    assert masker.text("".join(PEM.splitlines()[1:-1])) == MASK
    assert masker.text(f"{first} service_account {last}") == f"{first} service_account {last}"


def test_a_document_gives_what_looks_like_a_secret_alone() -> None:
    """A word under `key` is masked nowhere else for standing in some variable of the shell."""
    assert secret_values({"MATRIX": '{"key": "production", "token": "tok_9f8e7d6c5b"}'}) == ["tok_9f8e7d6c5b"]
    cells = {"key": "python-3.11", "cache_key": "linux-x64-2024", "token": "eu-west-1", "sort_key": 20241231}
    assert secret_values({"MATRIX": json.dumps({"include": [cells]})}) == []
    kept = {"password": "correct-horse-1", "api_key": 1234567890}
    assert secret_values({"ACCOUNT": json.dumps(kept)}) == ["correct-horse-1", "1234567890"]
    assert secret_values({"ODD": '{"key": '}) == [] and secret_values({"ODD": "{" * 10_000}) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "POST /c?access_token=Zx81qone9k HTTP/1.1\nHost: h\nAuthorization: Bearer Zx81qtwo9k\nX-Api-Key: Zx81qthree9k\n"
            'Cookie: sid=Zx81qfour9k; lang=en\n\n{"apiKey": "Zx81qfive9k", "m": {{prompt}}}',
            {"Zx81qone9k", "Zx81qtwo9k", "Zx81qthree9k", "Zx81qfour9k", "Zx81qfive9k"},
        ),
        ("x={{prompt}}&token=Zx81qone9k&y={{env.MY_TOKEN}}", {"Zx81qone9k"}),
        ("Server=h;Password=Zx81qone9k;Uid=u", {"Zx81qone9k"}),
        ("host=h password=Zx81qone9k user=u", {"Zx81qone9k"}),
        ('{"m": {{message}}, "auth": {"token": "Zx81qone9k"}}', {"Zx81qone9k"}),
        ('echo "{\\"api_key\\": \\"Zx81qone9k\\"}" PASSWORD=Zx81qtwo9k;', {"Zx81qone9k", "Zx81qtwo9k"}),
        ("({headers: {'X-Api-Key': 'Zx81qone9k'}})", {"Zx81qone9k"}),
        ("Bearer Zx81qone9k", {"Zx81qone9k"}),
        (
            "Authorization: Basic dXNlcjpaeDgxcW9uZTlr",
            {"dXNlcjpaeDgxcW9uZTlr", "user:Zx81qone9k", "Zx81qone9k"},
        ),
        ("Bearer of bad news", set()),
        ("the password is hunter22x, max_tokens: 40960000, Tokens: 12345678", set()),
        ("primary_key=customer_id2&cache_key=abc_2024_x&key=name_of_1", set()),
        ("X-Api-Key: {{env.KEY}}\ntoken: ${TOKEN_A1234567}", set()),
        ("const token = response.access_token_v2; apiKey: process.env.OPENAI_API_KEY1", set()),
    ],
)
def test_secrets_behind_their_names_in_a_text_of_a_configuration(text: str, found: set[str]) -> None:
    """A body of text, a whole request, a connection string: what stood there was in every record and report."""
    assert set(secret_values({"body": text})) == found
    assert (
        secret_values({"system": text, "a": [{"description": text}]}) == []
    )  # is said to a model or a person


def test_the_secrets_of_a_command_are_known() -> None:
    command = (
        "bot.py --api-key sk-abcdef1234567890 -H 'Authorization: Bearer tok9876543210abc' --token=zzz9876543210 "
        "PASSWORD=hunter2hunter --stop-token endoftext --max-tokens 10000000 --key-file /run/secrets/key1 "
        "--password $THE_PASSWORD --verbose --api-key"
    )
    found = in_command(command)
    assert {"sk-abcdef1234567890", "tok9876543210abc", "zzz9876543210", "hunter2hunter"} == {
        one for one in found if not one.startswith("Bearer")
    }
    assert in_command(["bot.py", "--secret", "abc123def456"]) == ["abc123def456"]
    assert in_command("bot.py 'half") == []
    for login in ("-u me:passw0rd99", "--user me:passw0rd99", "--user=me:passw0rd99"):
        assert in_command(f"curl {login} http://host/") == ["passw0rd99"]
    assert "sk-12345678abc" in in_command("sh -c 'API_KEY=sk-12345678abc python bot.py --mode fast'")


@pytest.mark.parametrize(
    "command",
    [
        "psql --no-password analytics_db2",
        "docker login --password-stdin registry.example.com",
        "bot --api-key OPENAI_API_KEY",
        "bot --auth-token-provider google-cloud",
        "bot --secret-id prod/db/main --credentials conf/creds.json",
        "bot --use-token customer_agent2",
        "python -u bot.py:main_loop1 --user me:$PASSWORD",
        "sh -c 'TOKEN=$(cat token) bot.py'",
    ],
)
def test_what_an_option_says_of_a_secret_is_none(command: str) -> None:
    """The next word after a switch, and what tells where a secret is, were masked in every answer."""
    assert in_command(command) == []


def test_a_user_of_an_address_that_is_a_token_is_a_secret() -> None:
    assert secret_values({"DSN": "https://abcdef0123456789abcdef@host.example/1"}) == [
        "abcdef0123456789abcdef"
    ]
    assert secret_values({"HOME_PAGE": "https://somebody@host.example/1"}) == []
    assert secret_values({"DATABASE_URL": "postgres://analytics_reader_2024@db/x"}) == []
    assert secret_values({"REPO": "ssh://deploy-user-production1@host/x.git"}) == []


def test_paths_are_no_lines_of_a_key() -> None:
    """The project's own folder was masked wherever it stood."""
    paths = "/usr/local/share/keys:/home/runner/work/project"
    assert secret_values({"SSH_KEY_PATHS": paths}) == [paths]


def test_signs_find_what_the_forms_find() -> None:
    """Texts are searched for few letters and digits in a row, not for each of hundreds of forms."""
    for secret in (SECRET, "pass&w<rd'9", 'a+b/c=d"e\\f', "0123456789abcdef+abcdef"):
        masker = Masker([secret])
        for form in forms(secret):
            assert masker.text(f"x {form} y") == f"x {MASK} y"
            stream = masker.stream()
            shown = "".join(stream.feed(one) for one in f"x {form} y") + stream.flush()
            assert shown.startswith("x •••") and shown.endswith(" y") and form not in shown


def test_an_internal_error_says_no_secret_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("SHOP_API_KEY", "sk-0123456789abcdef")
    line = crash_line(ValueError("no header 'Bearer sk-0123456789abcdef'"))
    report = (tmp_path / "tui-eval" / "crash.log").read_text("utf-8")
    assert f"Bearer {MASK}" in line and f"Bearer {MASK}" in report
    assert "0123456789" not in line + report


@pytest.mark.parametrize(
    "command",
    [
        "sh -c 'ask --api-key Zx81qone9k; env'",
        "sh -c 'ask --api-key Zx81qone9k | jq .'",
        "sh -c 'PASSWORD=Zx81qone9k; ask'",
        "sh -c 'curl http://h.example/z?key=Zx81qone9k'",
        "sh -c 'curl -d token=Zx81qone9k h.example'",
    ],
)
def test_the_secrets_of_a_shell_s_command_are_known(command: str) -> None:
    assert "Zx81qone9k" in in_command(command)
