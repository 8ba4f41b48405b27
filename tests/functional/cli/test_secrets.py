"""Secrets of nova.conf appear in no output, although services repeat them in their errors."""

import html
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
import requests
from oslo_config import cfg

from cpu_tiers.conf.read import read_config
from cpu_tiers.tools.frame.app import MASK, hide, hide_tokens, masked, masked_output

PASSWORD = 'Pa"ss<w>ö%rd'
FORMS = (PASSWORD, json.dumps(PASSWORD)[1:-1], html.escape(PASSWORD), quote(PASSWORD))


class Echo(BaseHTTPRequestHandler):
    """A Keystone that answers each request for a token with the request, as an error."""

    status = 400

    def do_GET(self) -> None:
        self.answer(404, b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        password = json.loads(body)["auth"]["identity"]["password"]["user"]["password"]
        forms = " ".join([password, html.escape(password), quote(password), repr(password)])
        message = f"bad request: {body.decode()} {forms}"
        error = {"error": {"code": self.status, "message": message, "title": "Bad"}}
        self.answer(self.status, json.dumps(error).encode())

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(params=[400, 401])
def keystone(request: pytest.FixtureRequest) -> Iterator[str]:
    handler = type("Handler", (Echo,), {"status": request.param})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v3"
        server.shutdown()


@pytest.fixture
def nova_conf(tmp_path: Path) -> Path:
    path = tmp_path / "nova.conf"
    path.write_text(
        "[placement]\nauth_type = password\nusername = placement\nuser_domain_id = default\n"
        f"auth_url = http://127.0.0.1:1/v3\npassword = {PASSWORD.replace('$', '$$')}\n"
        "[filter_scheduler]\n"
    )
    return path


@pytest.mark.parametrize("options", [[], ["-v"], ["--debug"], ["--log-file"]])
@pytest.mark.parametrize("command", ["placement check", "cloud show"])
def test_a_keystone_that_repeats_the_password(
    keystone: str, nova_conf: Path, tmp_path: Path, options: list[str], command: str
) -> None:
    nova_conf.write_text(nova_conf.read_text().replace("http://127.0.0.1:1/v3", keystone))
    log = tmp_path / "log"
    if "--log-file" in options:
        options = ["--debug", "--log-file", str(log)]
    code = "import sys; from cpu_tiers.tools.frame.app import main; sys.exit(main(sys.argv[1:]))"
    arguments = [*options, "--config-file", str(nova_conf), *command.split()]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=False,
    )
    written = done.stdout + done.stderr + (log.read_text() if log.exists() else "")
    assert done.returncode == 1
    assert MASK in written
    assert [form for form in FORMS if form in written] == []


def conf_with(**secrets: str) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf.register_opts([cfg.StrOpt(name, secret=True, default=v) for name, v in secrets.items()])
    conf([])
    return conf


@pytest.mark.parametrize(
    ("secret", "text", "shown"),
    [
        pytest.param("s3cret", "got s3cret; s3cret", "got ***; ***", id="each time"),
        pytest.param("s3cret", "s3crets of s3cret", "s3crets of ***", id="words"),
        pytest.param(
            "mysql://nova:p%40ss@db/nova", "p@ss of mysql://nova:p%40ss@db/nova",
            "*** of mysql://nova:***@db/nova", id="the password of a URL",
        ),
        pytest.param("rabbit://guest:guest@mq", "guest a", "guest a", id="a public password"),
        pytest.param("", "a text", "a text", id="no password"),
        pytest.param("a", "a text", "a text", id="too short"),
        pytest.param("http://[", "a text", "a text", id="no URL"),
    ],
)  # fmt: skip
def test_texts(secret: str, text: str, shown: str) -> None:
    with masked_output():
        hide(conf_with(secret=secret))
        assert masked(text) == shown
    assert masked(text) == text


@pytest.mark.parametrize("token", ["gAAAAAB-to_ken==", b"gAAAAAB-to_ken=="])
def test_a_token_that_a_service_repeats(token: str | bytes) -> None:
    session = requests.Session()
    answer = requests.Response()
    answer.request = requests.Request("GET", "http://a", headers={"X-Auth-Token": token}).prepare()
    with masked_output():
        hide_tokens(session)
        (note,) = session.hooks["response"]
        note(answer)
        assert masked("got gAAAAAB-to_ken== and") == "got *** and"
        answer.request = requests.Request("GET", "http://a").prepare()
        note(answer)
        assert masked("None") == "None"


def test_the_streams_keep_the_attributes(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    with masked_output():
        hide(conf_with(secret="s3cret"))
        print("s3cret", 3, "s3cret", file=sys.stderr)  # noqa: T201
        sys.stdout.writelines(["a s3cret\n"])
        assert sys.stdout.encoding == before[0].encoding
        assert not sys.stdout.isatty()
    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr() == ("a ***\n", "*** 3 ***\n")


def test_options_that_are_registered_after_the_file_was_read(nova_conf: Path) -> None:
    conf = read_config([str(nova_conf)])
    with masked_output():
        hide(conf)
        assert masked(PASSWORD) == PASSWORD
        conf.register_opt(cfg.StrOpt("password", secret=True), group="placement")
        assert masked(PASSWORD) == MASK
