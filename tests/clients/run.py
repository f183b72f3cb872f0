"""Runs the tests of one of the clients in other languages, client/LANGUAGE/test, or, as
"together", of all of them on one server.

usage: run.py LANGUAGE --server PROGRAM --timecachectl PROGRAM --build DIRECTORY
              [--conformance-without FILE]

With FILE the server is tests/peer's three_nodes; OWNER_ROUTING in the environment says so to
clients that can go to the owners of keys by themselves.

What the scripts fetch and build stays in DIRECTORY. Exit code 77, for ctest: skipped, also in
part, as what it needs is not here; the last line says what. With TIMECACHED_ALL_CLIENTS in
the environment that is a failure."""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SKIPPED = 77

# What has to be installed for each, and the oldest version that will do.
TOOLS = {
    "python": {"python3": (3, 10)},
    "go": {"go": (1, 26), "protoc": (3, 21)},
    "java": {"javac": (17,), "mvn": (3,)},
    "node": {"node": (18, 20), "npm": (9,)},
}


def version_of(tool, environment):
    """Of a program, as numbers; empty if it is not there or does not say."""
    if shutil.which(tool, path=environment["PATH"]) is None:
        return ()
    arguments = ["env", "GOVERSION"] if tool == "go" else ["--version"]
    said = subprocess.run([tool, *arguments], env=environment, check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    # Some say it in bold.
    found = re.search(r"(\d+(?:\.\d+)*)", re.sub(r"\x1b\[[\d;]*m", "", said))
    return tuple(map(int, found[1].split("."))) if found else ()


def lacking(language, environment):
    """Why the tests cannot run here; empty if they can."""
    reasons = []
    for tool, least in TOOLS[language].items():
        version = version_of(tool, environment)
        if not version:
            reasons.append(f"{tool} is not installed")
        elif version < least:
            reasons.append(f"{tool} is {dotted(version)}, and {dotted(least)} is the least")
    if language == "python" and subprocess.run(
            [environment["PYTHON"], "-c", "import ensurepip, venv"], check=False,
            stderr=subprocess.DEVNULL).returncode != 0:
        reasons.append("python3 has no venv")
    return ", ".join(reasons)


def dotted(version):
    return ".".join(map(str, version))


def newer_go(module, directory, environment):
    """The environment with a Go that is new enough for a go.mod; an older one fetches it, as a
    module, into a directory. Debian's is older. From 1.21 on Go would do so by itself, before
    that not."""
    if not shutil.which("go", path=environment["PATH"]):
        return environment
    environment = {name: value for name, value in environment.items() if name != "GOROOT"}
    wanted = re.search(r"^go (\S+)$", module.read_text(), re.M)[1]
    if wanted.count(".") == 1:
        wanted += ".0"
    installed = version_of("go", environment)
    if not installed or installed >= tuple(map(int, wanted.split("."))):
        return environment
    root = directory / f"go-{wanted}"
    if not (root / "bin/go").exists():
        print(f"fetching Go {wanted}", flush=True)
        architecture = subprocess.run(["go", "env", "GOARCH"], env=environment, check=True,
                                      text=True, stdout=subprocess.PIPE).stdout.strip()
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as tools:
            pathlib.Path(tools, "go.mod").write_text("module tools\n")
            fetched = subprocess.run(
                ["go", "mod", "download", "-json",
                 f"golang.org/toolchain@v0.0.1-go{wanted}.linux-{architecture}"],
                cwd=tools, check=False, stdout=subprocess.PIPE,
                env={**environment, "GO111MODULE": "on", "GOFLAGS": "-mod=mod",
                     "GOTOOLCHAIN": "local"})
            if fetched.returncode != 0:
                sys.exit(f"clients: go: FAILED, Go {wanted} could not be fetched: "
                         f"{json.loads(fetched.stdout)['Error']}")
        part = root.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        # A module's files may neither be written nor run.
        shutil.copytree(json.loads(fetched.stdout)["Dir"], part, copy_function=shutil.copyfile)
        for path in [*part.glob("bin/*"), *part.glob("pkg/tool/*/*")]:
            path.chmod(0o755)
        part.rename(root)
    return {**environment, "PATH": f"{root / 'bin'}:{environment['PATH']}"}


def environment_of(language, arguments):
    """What the language's script is run in."""
    directory = pathlib.Path(arguments.build).resolve() / language
    directory.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ, "TIMECACHED": os.path.abspath(arguments.server),
        "TIMECACHECTL": os.path.abspath(arguments.timecachectl),
        "BUILD": str(directory), "CONFORMANCE": str(ROOT / "tests/conformance"),
        "PYTHON": sys.executable}
    if language == "go":
        environment = newer_go(ROOT / "client/go/go.mod", directory, environment)
    return environment


def skip(name, reason):
    if os.environ.get("TIMECACHED_ALL_CLIENTS"):
        print(f"clients: {name}: FAILED, {reason}")
        return 1
    print(f"clients: {name}: SKIPPED, {reason}")
    return SKIPPED


def run_language(language, arguments):
    script = ROOT / "client" / language / "test"
    if not script.exists():
        return skip(language, "there is no such client")
    environment = environment_of(language, arguments)
    reason = lacking(language, environment)
    if reason:
        return skip(language, reason)
    if arguments.conformance_without is None:
        return subprocess.run([script], env=environment, check=False).returncode
    with tempfile.TemporaryDirectory() as scenarios:
        copy_scenarios(arguments.conformance_without, pathlib.Path(scenarios))
        return subprocess.run([script, "--conformance"], check=False,
                              env={**environment, "CONFORMANCE": scenarios,
                                   "OWNER_ROUTING": "1"}).returncode


def copy_scenarios(without, to):
    """All but those that a file as tests/peer/left_out.json names."""
    lists = json.loads(pathlib.Path(without).read_text())
    left_out = {*lists["forwarded"], *lists["several_partitions"]}
    source = ROOT / "tests/conformance"
    known = set()
    for path in [*source.glob("*.json"), *source.glob("recipes/*.json")]:
        content = json.loads(path.read_text())
        known.update(scenario["name"] for scenario in content["scenarios"])
        content["scenarios"] = [scenario for scenario in content["scenarios"]
                                if scenario["name"] not in left_out]
        copy = to / path.relative_to(source)
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(json.dumps(content))
    if not left_out <= known:
        sys.exit(f"clients: FAILED, {without} names no scenarios: {left_out - known}")


def command_of(language, option, environment):
    """Of a program that the language's script builds."""
    built = subprocess.run([ROOT / "client" / language / "test", option], env=environment,
                           check=False, text=True, stdout=subprocess.PIPE)
    if built.returncode != 0:
        sys.exit(f"clients: together: FAILED, {language} could not be built: see above")
    return built.stdout.strip().splitlines()[-1]


def run_together(arguments):
    programs, absent = {}, []
    for language in TOOLS:
        environment = environment_of(language, arguments)
        reason = lacking(language, environment)
        if reason:
            absent.append(f"{language} does not take part: {reason}")
            continue
        programs[language] = {
            "member": command_of(language, "--member-command", environment),
            "peer": command_of(language, "--peer-command", environment)}
    if "python" not in programs:
        return skip("together", ", ".join(absent))
    status = subprocess.run(
        [sys.executable, "-B", HERE / "cross_test.py", json.dumps(programs)],
        env=environment_of("python", arguments), check=False).returncode
    return skip("together", ", ".join(absent)) if absent and status == 0 else status


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("language", choices=[*TOOLS, "together"])
    parser.add_argument("--server", required=True, help="the server program")
    parser.add_argument("--timecachectl", required=True, help="the command line")
    parser.add_argument("--build", required=True, help="where to work; kept, as a cache")
    parser.add_argument("--conformance-without", metavar="FILE",
                        help="run the scenarios of conformance alone, without those it names")
    arguments = parser.parse_args()
    if arguments.language == "together":
        return run_together(arguments)
    return run_language(arguments.language, arguments)


if __name__ == "__main__":
    sys.exit(main())
