"""Every sample of the documents does what it shows."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from abuse.processes import Server, wait_until
from docs import markdown
from docs.markdown import DOCUMENTS
from docs.session import Session, pattern

BUILD = pathlib.Path(os.environ["BUILD"])
SERVER = BUILD / "server" / "timecached"

# Programs that a test cannot run, and what is looked at in their place.
ELSEWHERE = {
    "docker": "needs a registry: ./dev container builds deploy/Dockerfile",
    "helm": "needs a cluster: ./dev deploy --check renders the chart with these values",
    "grpcurl": "is not in Debian: its methods and fields are looked up in the protos",
}
# Blocks that are no sample, by their first line.
DRAWINGS = [
    "your services            timecached                               your workers",
    "d = ceil((t + x) / w) * w          so that   t + x  <=  d  <  t + x + w",
]
# As long as it takes to see that it works.
SHORTER = {"--seconds 5": "--seconds 1"}


def all_blocks():
    return [block for name in DOCUMENTS for block in markdown.blocks(name)]


def program(block):
    return markdown.steps(block)[0].command.split()[0]


def is_session(block):
    return (block.language == "console" and program(block) not in ELSEWHERE
            and not is_secured(block))


def is_secured(block):
    return block.language == "console" and "--token-file" in block.text


def is_access_file(block):
    return block.language == "yaml" and block.text.startswith("principals:")


def is_configuration(block):
    return block.language == "yaml" and not is_access_file(block)


def is_cpp(block):
    return block.language == "cpp"


def is_command_list(block):
    return not block.language and block.text.startswith("./dev ")


def is_layout(block):
    return not block.language and block.text.startswith("proto/")


KINDS = [
    is_session, is_secured, is_access_file, is_configuration, is_cpp, is_command_list,
    is_layout,
    lambda block: block.language == "console" and program(block) in ELSEWHERE,
    lambda block: block.title in DRAWINGS]


def make_certificates(directory):
    """tls.crt and tls.key for cache.example, and their own root as clients.crt."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=cache.example", "-addext",
         "subjectAltName=DNS:cache.example,IP:127.0.0.1", "-days", "30", "-keyout",
         directory / "tls.key", "-out", directory / "tls.crt"],
        check=True, capture_output=True)
    shutil.copy(directory / "tls.crt", directory / "clients.crt")


def out_of_reach(config):
    """The configuration on free ports of the loopback, with a log that is read."""
    config = re.sub(r'(?:[\d.]+|"\[::\]):717\d"?', "127.0.0.1:0", config)
    return config if "log:" in config else f"{config}log: {{format: json}}\n"


class SampleTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="timecached-docs-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def start(self, config):
        server = Server(SERVER, config)
        self.addCleanup(server.stop)
        return server

    def install(self, access_file):
        """Makes the files that samples name, in a directory of the test's."""
        etc = self.directory / "etc"
        (etc / "tls").mkdir(parents=True)
        make_certificates(etc / "tls")
        (etc / "access.yaml").write_text(access_file)
        (etc / "kafka-password").write_text("a password")

    def here(self, text):
        """A configuration with the files where the test has them."""
        for place, copy in [
                ("/etc/timecached", f"{self.directory}/etc"),
                ("/var/lib/timecached", str(self.directory)),
                ("unix:/run/", f"unix:{self.directory}/")]:
            text = text.replace(place, copy)
        return text

    def access_file(self, token_hash="0" * 64):
        (block,) = filter(is_access_file, all_blocks())
        (shortened,) = re.findall(r'"[0-9a-f]+\.\.\.64 digits"', block.text)
        return block.text.replace(shortened, f'"{token_hash}"')

    def session(self, server):
        session = Session(BUILD, server.address)
        self.addCleanup(session.close)
        return session

    def test_every_block_is_of_a_kind_that_is_looked_at(self):
        for block in all_blocks():
            with self.subTest(block.place):
                self.assertEqual(sum(kind(block) for kind in KINDS), 1, block.text)
        for title in DRAWINGS:
            self.assertIn(title, [block.title for block in all_blocks()])

    def test_programs_compile(self):
        """With the public headers alone. That such programs link and run: tests/install."""
        programs = [*filter(is_cpp, all_blocks())]
        self.assertTrue(programs)
        for block in programs:
            with self.subTest(block.place):
                source = self.directory / "sample.cc"
                source.write_text(block.text)
                done = subprocess.run(
                    ["c++", "-std=c++20", "-fsyntax-only", "-I",
                     markdown.ROOT / "client" / "cpp" / "include", source],
                    capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_configurations_start_a_server(self):
        configurations = [*filter(is_configuration, all_blocks())]
        self.assertGreaterEqual(len(configurations), 2)
        self.install(self.access_file())
        for block in configurations:
            with self.subTest(block.place):
                config = self.directory / "timecached.yaml"
                config.write_text(self.here(block.text))
                check = subprocess.run([SERVER, "--config", config, "--check-config"],
                                       capture_output=True, text=True, check=False)
                self.assertEqual(check.returncode, 0, check.stderr)
                if re.search("^cluster:", block.text, re.M):
                    continue  # It starts where there are brokers alone.
                server = self.start(out_of_reach(config.read_text()))
                for listener in re.findall(r"- address: unix:(\S+)", config.read_text()):
                    self.assertTrue(pathlib.Path(listener).is_socket())
                self.assertEqual(server.stop(), 0)

    def test_sessions_show_what_they_show(self):
        server = self.start("listeners: [{address: '127.0.0.1:0'}]\nlog: {format: json}\n")
        session = self.session(server)
        for block in filter(is_session, all_blocks()):
            with self.subTest(block.place):
                self.run_session(session, block)

    def run_session(self, session, block):
        shown, begin = [], len(session.output())
        for step in markdown.steps(block):
            command = self.filled_in(step.command, session)
            code = session.type(command)
            self.assertEqual(code, 0, f"{command}: {session.output()[begin:]}")
            if " watch" in command and command.rstrip().endswith("&"):
                self.wait_for_watcher(session)
            shown += step.shown
        # Also from the background, at its time.
        for line in shown:
            match = session.wait_for(f"^{pattern(line)}$", begin)
            begin += match.end()

    def filled_in(self, command, session):
        for long, short in SHORTER.items():
            command = command.replace(long, short)
        if "VERSION" in command:
            version = re.findall(r"version +(\d+)", session.output())[-1]
            command = command.replace("VERSION", version)
        return command

    def wait_for_watcher(self, session):
        """A watch sees what dies from when it has begun."""
        def has_begun():
            status = subprocess.run(
                [BUILD / "client/cli/timecachectl", "status", "--json"], capture_output=True,
                env={**os.environ, "TIMECACHED_ADDRESS": session.address}, check=True)
            return json.loads(status.stdout)["limits"]["watchers"]["used"] >= session.watches
        session.watches += 1
        wait_until(has_begun, "the watch begins")

    def test_the_access_file_lets_in_who_has_the_token(self):
        (configuration,) = [block for block in filter(is_configuration, all_blocks())
                            if "access:" in block.text]
        (block,) = filter(is_secured, all_blocks())
        make, use = markdown.steps(block)
        self.install(self.access_file())
        server = self.start(out_of_reach(self.here(configuration.text)))
        session = self.session(server)
        session.type("alias tc='./dev ctl'")
        shutil.copy(self.directory / "etc/tls/tls.crt", os.path.join(session.path, "ca.crt"))
        address, command = "cache.example:7171", use.command
        self.assertIn(address, command)
        command = command.replace(address, server.address)
        self.assertEqual(session.type(make.command), 0, session.output())
        line = re.search(r"token_sha256: \[([0-9a-f]{64})\]", session.output())
        self.assertTrue(line, session.output())
        self.assertNotEqual(session.type(command), 0)
        self.assertIn("no principal has this token", session.output())
        (self.directory / "etc/access.yaml").write_text(self.access_file(line[1]))
        wait_until(lambda: session.type(command) == 0, f"{command}: {session.output()}")
        self.assertRegex(session.output(), r"(?m)^default\b")

    def test_command_lists_name_commands_of_dev(self):
        for block in filter(is_command_list, all_blocks()):
            for line in block.text.splitlines():
                self.assertTrue(is_dev_command(line.split("#")[0].split()[1]), line)

    def test_the_layout_is_that_of_the_repository(self):
        (block,) = filter(is_layout, all_blocks())
        for line in block.text.splitlines():
            self.assertTrue((markdown.ROOT / line.split()[0]).exists(), line)

    def test_calls_by_grpcurl_name_methods_and_fields_of_the_protos(self):
        protos = "\n".join(
            path.read_text() for path in (markdown.ROOT / "proto/timecache/v1").glob("*.proto"))
        commands = "\n".join(block.text for block in all_blocks() if "grpcurl" in block.text)
        calls = re.findall(
            r"-d '(.*?)'\s+(?:\\\n\s*)?[\d.:]+ timecache\.v1\.(\w+)/(\w+)", commands)
        self.assertGreaterEqual(len(calls), 2)
        self.assertEqual(len(calls), commands.count(" -d "))
        for request, service, method in calls:
            declared = re.search(rf"service {service} {{.*?^}}", protos, re.M | re.S)[0]
            message = re.search(rf"rpc {method}\((\w+)\)", declared)[1]
            fields = re.search(rf"^message {message} {{.*?^}}", protos, re.M | re.S)[0]
            request = json.loads(request)
            for field in request:
                self.assertRegex(fields, rf"\b{field} = \d+")
            # Of the messages in it some one has them.
            for field in fields_below(request):
                self.assertRegex(protos, rf"\b{field} = \d+")


def fields_below(value):
    """The names in a request's JSON, at any depth."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield name
            yield from fields_below(below)
    elif isinstance(value, list):
        for below in value:
            yield from fields_below(below)


def is_dev_command(name):
    return re.search(rf"^  {re.escape(name)}\b", DEV_HELP, re.M) is not None


DEV_HELP = subprocess.run([markdown.ROOT / "dev", "help"], capture_output=True, text=True,
                          check=True).stdout


if __name__ == "__main__":
    unittest.main()
