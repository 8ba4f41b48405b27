"""Nova's own configuration, read by the command in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

PLACEMENT = "[placement]\nauth_type = admin_token\nendpoint = http://127.0.0.1:1\ntoken = x\n"


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        pytest.param(
            "[api_database]\nconnection = nonsense",
            "Nova cannot be asked: Could not parse SQLAlchemy URL",
            id="an API database, and no URL of one",
        ),
        pytest.param(
            "[api_database]\nconnection = sqlite:///{tmp_path}/empty.db",
            "Nova cannot be asked: (sqlite3.OperationalError) no such table",
            id="an API database that is not Nova's",
        ),
        pytest.param(
            "[api_database]\nconnection = mysql+pymysql://nova:secret@127.0.0.1:1/nova_api\n"
            "max_retries = -1",
            "Nova cannot be asked: (pymysql.err.OperationalError) (2003, \"Can't connect to",
            id="an API database that is down",
        ),
        pytest.param(
            "[DEFAULT]\ntransport_url = fake:/\nrpc_response_timeout = 1",
            "Nova cannot be asked: No reply on topic conductor",
            id="no API database, so the conductor is asked, and is away",
        ),
        pytest.param(
            "[DEFAULT]\ntransport_url = rabbit://127.0.0.1:1/\nrpc_response_timeout = 1",
            "Nova cannot be asked: no message bus",
            id="no API database, and no message bus",
        ),
        pytest.param(
            "[DEFAULT]\ntransport_url = nonsense:/",
            'Nova cannot be asked: Failed to load transport driver "nonsense"',
            id="a transport that there is not",
        ),
        pytest.param(
            "[libvirt]\nvcpu_share_multiplier = many",
            "nova.conf, [libvirt] vcpu_share_multiplier: invalid",
            id="an option of ours",
        ),
    ],
)
def test_a_configuration_that_leads_nowhere(tmp_path: Path, conf: str, message: str) -> None:
    path = tmp_path / "nova.conf"
    path.write_text(PLACEMENT + conf.format(tmp_path=tmp_path))
    cpu_tiers = str(Path(sys.executable).with_name("cpu-tiers"))
    result = subprocess.run(
        [cpu_tiers, "--config-file", str(path), "reshape", "plan", "--host", "one"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (result.returncode, result.stdout.strip()) == (1, "")
    *others, last = result.stderr.splitlines()
    assert last.startswith(message)
    assert all(line.startswith("Connection failed") for line in others)


def test_the_help_does_not_import_nova() -> None:
    code = (
        "import atexit, sys; atexit.register(lambda: print('nova.conf' in sys.modules));"
        " from cpu_tiers.tools.frame.app import main; main(['--help'])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "allocation heal" in result.stdout
    assert result.stdout.splitlines()[-1] == "False"
