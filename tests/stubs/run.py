"""Runs the programs of client/stubs by the commands of their README, and checks what
stubs of other languages are made from. Ends with a line such as that of tests/summary.py. What lacks its
tools is skipped; with TIMECACHED_ALL_CLIENTS in the environment that is a failure."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
STUBS = os.path.join(ROOT, "client/stubs")
sys.path[:0] = [os.path.join(ROOT, "tests/clients"), os.path.join(ROOT, "tests/support")]
from server import Server
import run as clients  # How an old Go fetches a newer one.

ADDRESS = "127.0.0.1:7171"  # as the README has it
# Fetching all from the registries is most of it, the first time.
LANGUAGE_TIMEOUT_SECONDS = 1500

# What has to be installed for each.
TOOLS = {
    "python": ["python3"],
    "go": ["go", "protoc"],
    "node": ["node", "npm"],
    "java": ["javac", "mvn"],
    "grpcurl": ["go"],
    "descriptors": ["python3"],
    "pool": ["python3", "protoc", "g++"],
    "others": ["protoc"],
}


# The code on the page: its block, the file that it is put into, and how that is run.
CODE = {
    "python": ("python", "short.py", "venv/bin/python short.py"),
    "go": ("go", "short/main.go", "go run ./short"),
    "node": ("js", "short.js", "node short.js"),
    "java": ("java", "src/main/java/Short.java",
             "mvn -q compile exec:java -Dexec.mainClass=Short"),
}


def block(language, kind):
    """A block of code of the language's section."""
    with open(os.path.join(STUBS, "README.md"), encoding="utf-8") as readme:
        sections = re.split(r"^## (.+)\n", readme.read(), flags=re.M)
    section = {title.lower(): text
               for title, text in zip(sections[1::2], sections[2::2])}[language]
    return re.search(rf"```{kind}\n(.*?)```", section, re.S).group(1)


def commands(language):
    """The lines behind a $ of the language's section, continued ones in one."""
    return re.findall(r"^\$ ((?:.*\\\n)*.*)$", block(language, "console"), re.M)


def lacking(language):
    """Why it cannot run here; empty if it can."""
    missing = [tool for tool in TOOLS[language] if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} not found"
    if "python3" in TOOLS[language] and subprocess.run(
            ["python3", "-c", "import ensurepip, venv"], stderr=subprocess.DEVNULL,
            check=False).returncode != 0:
        return "python3 has no venv"
    return ""


def use_newer_go(build):
    """From here on go is one that is new enough for all that is run here."""
    environment = clients.newer_go(pathlib.Path(STUBS, "go/go.mod"), pathlib.Path(build),
                                   dict(os.environ))
    os.environ["PATH"] = environment["PATH"]
    os.environ.pop("GOROOT", None)


def run(command, directory):
    subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=directory, check=True,
                   stdin=subprocess.DEVNULL, timeout=LANGUAGE_TIMEOUT_SECONDS)


class Tests:
    def __init__(self, server, programs, build):
        self.server = server
        self.programs = programs
        self.build = build

    def language(self, name):
        directory = os.path.join(self.build, name)
        # What was fetched stays, what was generated does not.
        shutil.rmtree(os.path.join(directory, "gen"), ignore_errors=True)
        shutil.copytree(os.path.join(STUBS, name), directory, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("gen", "node_modules", "target", "venv"))
        lines = commands(name)
        assert ADDRESS in lines[-1], f"the last command of {name} names no server"
        run("\n".join(lines).replace(ADDRESS, self.server.address), directory)
        self.code(name, directory)

    def code(self, name, directory):
        """Runs what the page shows, and expects what it says that this prints."""
        kind, file, command = CODE[name]
        text = block(name, kind)
        assert ADDRESS in text, f"the code of {name} names no server"
        path = os.path.join(directory, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text.replace(ADDRESS, self.server.address))
        said = subprocess.run(["bash", "-c", command], cwd=directory, check=True, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              timeout=LANGUAGE_TIMEOUT_SECONDS).stdout
        # Maven ends its colours, also where it shows none.
        said = re.sub(r"\x1b\[[0-9;]*m", "", said).splitlines()
        wanted = re.findall(r"prints: (.*)$", text, re.M)
        assert said == wanted and wanted, f"the code of {name} prints {said}, not {wanted}"

    def grpcurl(self, _):
        """Its commands, by the version that the page names; the last one ends at its event."""
        directory = os.path.join(self.build, "grpcurl")
        with open(os.path.join(STUBS, "README.md"), encoding="utf-8") as readme:
            package = re.search(r"`go install (\S+grpcurl@\S+)`", readme.read()).group(1)
        os.makedirs(directory, exist_ok=True)
        run(f"GOBIN=$PWD go install {package}", directory)
        *calls, watch = [line.replace(ADDRESS, self.server.address)
                         for line in commands("grpcurl")]
        run("PATH=$PWD:$PATH\n" + "\n".join(calls), directory)
        with subprocess.Popen(["bash", "-c", f"PATH=$PWD:$PATH; exec {watch}"], cwd=directory,
                              text=True, stdout=subprocess.PIPE) as watching:
            # The entry of the put above, in base64.
            told = any('"key": "aw=="' in line for line in watching.stdout)
            watching.terminate()
        assert told, "the watch ended without the event"

    def python_with_originals(self):
        """That of the Python program's environment, which has Google's originals."""
        python = os.path.join(self.build, "python/venv/bin/python")
        if not os.path.exists(python):
            self.language("python")
        return python

    def descriptors(self, _):
        run(f"{self.python_with_originals()} -B {HERE}/descriptors.py", ROOT)

    def pool(self, _):
        """A C++ program with our descriptors and, in a shared library, Google's."""
        directory = os.path.join(self.build, "pool")
        where = "import google.rpc; print(list(google.rpc.__path__)[0])"
        originals = subprocess.run([self.python_with_originals(), "-c", where], check=True,
                                   text=True, stdout=subprocess.PIPE).stdout.strip()
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(originals, os.path.join(directory, "google/rpc"),
                        ignore=shutil.ignore_patterns("*.py*", "context"))
        proto = os.path.join(self.programs, "proto")
        run(f"""
            protoc -I. --cpp_out=. google/rpc/status.proto google/rpc/error_details.proto
            g++ -std=c++20 -fPIC -shared -I. -o libgoogle_rpc.so \\
              google/rpc/status.pb.cc google/rpc/error_details.pb.cc -lprotobuf
            g++ -std=c++20 -I'{proto}' -o pool '{HERE}/pool.cc' \\
              '{proto}/libtimecache_proto.a' \\
              -Wl,--no-as-needed -L. -lgoogle_rpc -Wl,-rpath,. -lprotobuf
            ./pool
            """, directory)

    def others(self, _):
        """The names that protoc itself gives in other languages."""
        wanted = {
            "csharp": ("Data.cs", "namespace Timecache.V1 {"),
            "java": ("dev/timecached/v1/PutRequest.java", "package dev.timecached.v1;"),
            "objc": ("timecache/v1/Data.pbobjc.h", "TMCPutRequest"),
            "php": ("Timecache/V1/PutRequest.php", "namespace Timecache\\V1;"),
            "ruby": ("timecache/v1/data_pb.rb", "module V1"),
        }
        with tempfile.TemporaryDirectory() as out:
            for language, (name, text) in wanted.items():
                subprocess.run(["protoc", "-Iproto", f"--{language}_out={out}",
                                "timecache/v1/data.proto"], cwd=ROOT, check=True)
                with open(os.path.join(out, name), encoding="utf-8") as generated:
                    assert text in generated.read(), f"{language}: {name} lacks {text}"


# All others are languages.
OTHER_TESTS = {"grpcurl": Tests.grpcurl, "descriptors": Tests.descriptors, "pool": Tests.pool,
               "others": Tests.others}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", required=True, help="what CMake has built")
    parser.add_argument("--build", required=True, help="where to work; kept, as a cache")
    parser.add_argument("names", nargs="*", choices=[[], *TOOLS], metavar="NAME",
                        help=f"some of {', '.join(TOOLS)}; default: all")
    arguments = parser.parse_args()
    passed, failed, skipped = [], [], []
    programs = os.path.abspath(arguments.programs)
    with Server(os.path.join(programs, "server/timecached")) as server:
        tests = Tests(server, programs, os.path.abspath(arguments.build))
        for name in arguments.names or TOOLS:
            reason = lacking(name)
            if reason:
                may_skip = not os.environ.get("TIMECACHED_ALL_CLIENTS")
                (skipped if may_skip else failed).append(name)
                print(f"stubs: {name}: {'SKIPPED' if may_skip else 'FAILED'}, {reason}",
                      flush=True)
                continue
            print(f"stubs: {name}", flush=True)
            start = time.monotonic()
            try:
                if "go" in TOOLS[name]:
                    use_newer_go(tests.build)
                OTHER_TESTS.get(name, Tests.language)(tests, name)
                passed.append(name)
                said = "passed"
            except (subprocess.SubprocessError, AssertionError, OSError) as error:
                failed.append(name)
                said = f"FAILED, {error}"
            print(f"stubs: {name}: {said} after {time.monotonic() - start:.0f} s", flush=True)
    if skipped:
        print(f"stubs: skipped, for lack of their tools: {', '.join(skipped)}")
    ran = len(passed) + len(failed)
    print(f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
