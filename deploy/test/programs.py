"""The programs that what is rendered is for: Kubernetes' schemas by kubeconform, and
ours. KUBECONFORM, SCHEMAS (a directory, see schemas.py) and TIMECACHED (the server's
program) are in the environment."""

import os
import pathlib
import shutil
import subprocess
import tempfile


def kubeconform(manifest):
    location = os.environ["SCHEMAS"] + "/{{.ResourceKind}}{{.KindSuffix}}.json"
    return subprocess.run(
        [os.environ["KUBECONFORM"], "-strict", "-summary", "-schema-location", location],
        input=manifest,
        capture_output=True,
        text=True,
    )


ACCESS_RULES = """
principals:
  - name: spiffe://example/orders
    certificate_sans: [spiffe://example/orders]
rules:
  - principals: [spiffe://example/orders]
    namespaces: ["orders-*"]
    verbs: [read, write]
"""


def check_health(program, arguments):
    """A probe of the chart's, of a server that listens elsewhere."""
    with tempfile.TemporaryDirectory() as directory:
        address = f"unix:{directory}/health"
        config = pathlib.Path(directory) / "timecached.yaml"
        config.write_text(
            f"listeners:\n  - address: unix:{directory}/socket\n"
            f"health_address: {address}\n"
        )
        server = subprocess.Popen(
            [os.environ["TIMECACHED"], "--config", config], stderr=subprocess.PIPE
        )
        try:
            while b"server_started" not in server.stderr.readline():
                assert server.poll() is None
            where = arguments.index("--address") + 1
            client = pathlib.Path(os.environ["TIMECACHED"]).parent.parent / "client/cli"
            return subprocess.run(
                [client / program, *arguments[:where], address, *arguments[where + 1 :]],
                capture_output=True,
                text=True,
            )
        finally:
            server.terminate()
            server.communicate()


def _make_certificate(directory):
    """tls.key and tls.crt."""
    subprocess.run(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
        "-subj /CN=test -days 30 -keyout tls.key -out tls.crt".split(),
        cwd=directory,
        check=True,
        capture_output=True,
    )


def start_console(arguments):
    """The line that the chart's console begins with, on a port that is free, with files in
    the place of the Secrets'."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory)
        for secret in "tls", "token", "server":
            (path / secret).mkdir()
        _make_certificate(path / "tls")
        shutil.copy(path / "tls/tls.crt", path / "server/ca.crt")
        for secret in "token", "server":
            (path / secret / "token").write_text("a-token-of-twenty-letters")
        client = pathlib.Path(os.environ["TIMECACHED"]).parent.parent / "client/cli"
        console = subprocess.Popen(
            [
                client / "timecachectl",
                *(
                    argument.replace("/etc/console/", f"{directory}/").replace(":7173", ":0")
                    for argument in arguments
                ),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            return console.stdout.readline()
        finally:
            console.terminate()
            console.communicate()


def check_config(text, *flags):
    """timecached --check-config, with files in the place of the Secrets'."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory)
        for secret in "tls", "client-ca", "access", "kafka", "peer", "peer-ca":
            (path / secret).mkdir()
        _make_certificate(path / "tls")
        shutil.copy(path / "tls/tls.crt", path / "client-ca/ca.crt")
        (path / "access/access.yaml").write_text(ACCESS_RULES)
        (path / "kafka/sasl.password").write_text("a password")
        shutil.copy(path / "tls/tls.crt", path / "kafka/ssl.ca.pem")
        (path / "peer/token").write_text("a-token-of-twenty-letters")
        shutil.copy(path / "tls/tls.crt", path / "peer-ca/ca.crt")
        config = path / "timecached.yaml"
        config.write_text(text.replace("/etc/timecached/", f"{directory}/"))
        return subprocess.run(
            [os.environ["TIMECACHED"], "--config", config, "--check-config", *flags],
            capture_output=True,
            text=True,
        )
