"""Builds small programs with the C++ client: as installed, by find_package (static and
shared) and by pkg-config, and runs them; as a part of their own build, as far as that
takes seconds: it is configured, and one source is compiled, but the client is not built
again."""

import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
START_TIMEOUT_SECONDS = 60

# What a program that uses the client may see of the flags that it was built with.
FLAGS_OF_OURS = ("-Werror", "-Wall", "-fsanitize", "-fprofile", "-prefix-map", "-fPIC",
                 "-fvisibility", "-DTIMECACHE")


def run(*command, **more):
    """The output of a command, which must succeed."""
    done = subprocess.run(command, check=False, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout


class Server:
    """A timecached on a Unix socket; ends with the block."""

    def __init__(self, program, directory):
        self.path = os.path.join(directory, "socket")
        self.address = "unix:" + self.path
        self.log = open(os.path.join(directory, "log"), "w+b")
        self.process = subprocess.Popen([program, "--listen", self.address],
                                        stdin=subprocess.DEVNULL, stderr=self.log)

    def __enter__(self):
        until = time.monotonic() + START_TIMEOUT_SECONDS
        while not os.path.exists(self.path):
            assert self.process.poll() is None and time.monotonic() < until, "no server"
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.close()


class Tests:
    def __init__(self, arguments, directory):
        self.arguments = arguments
        self.directory = directory
        self.prefix = os.path.join(directory, "prefix")
        self.hello = os.path.join(arguments.source, "client/examples/hello.cc")

    def configure(self, name, *more):
        """Of tests/install/NAME; its build's directory."""
        build = os.path.join(self.directory, name)
        run("cmake", "-G", "Ninja", "-S", os.path.join(HERE, name), "-B", build,
            f"-DCMAKE_CXX_COMPILER={self.arguments.compiler}", "-DCMAKE_BUILD_TYPE=Debug",
            "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", f"-DHELLO={self.hello}", *more)
        self.check_flags(build)
        return build

    def check_flags(self, build):
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
            commands = [each["command"] for each in json.load(file)
                        if each["file"] == self.hello]
        assert commands
        for command in commands:
            leaked = [flag for flag in FLAGS_OF_OURS if flag in command]
            assert not leaked, f"{leaked} in {command}"

    def check_hello(self, program, **more):
        server = self.server
        said = run(program, server.address, **more)
        assert said == "got world\nhello expired, its value was world\n", said
        nobody = subprocess.run([program, "unix:/nonexistent/socket"], check=False, text=True,
                                stderr=subprocess.PIPE, **more)
        assert nobody.returncode == 1 and "UNAVAILABLE" in nobody.stderr, nobody.stderr

    def install(self):
        run("cmake", "--install", self.arguments.build, "--component", "client",
            "--prefix", self.prefix)
        installed = [os.path.join(where, file)[len(self.prefix) + 1:]
                     for where, _, files in os.walk(self.prefix) for file in files]
        headers = [file for file in installed if file.endswith(".h")]
        assert "include/timecache/client.h" in headers, installed
        assert all(re.fullmatch(r"include/timecache/(recipes/)?\w+\.h", file) for file in headers), headers
        for file in headers:
            with open(os.path.join(self.prefix, file), encoding="utf-8") as header:
                for include in re.findall(r'#include ["<]([^">]+)', header.read()):
                    assert re.match(r"absl/|timecache/\w+\.h$|\w+$", include), (file, include)
                    assert not include.startswith("timecache/") or \
                        f"include/{include}" in headers, (file, include)

    def package(self):
        build = self.configure("package", f"-DCMAKE_PREFIX_PATH={self.prefix}",
                               f"-DPROTO={self.arguments.source}/proto")
        run("cmake", "--build", build)
        for program in ("hello_static", "hello_shared"):
            self.check_hello(os.path.join(build, program))
        for program in ("descriptors_static", "descriptors_shared"):
            run(os.path.join(build, program))

    def pkg_config(self):
        """As a Makefile does it."""
        [directory] = [where for where, _, files in os.walk(self.prefix)
                       if "timecached.pc" in files]
        flags = run("pkg-config", "--cflags", "--libs", "timecached",
                    env={**os.environ, "PKG_CONFIG_PATH": directory}).split()
        program = os.path.join(self.directory, "hello")
        run(self.arguments.compiler, "-std=c++20", self.hello, "-o", program, *flags)
        self.check_hello(program, env={**os.environ,
                                       "LD_LIBRARY_PATH": os.path.dirname(directory)})

    def subdirectory(self):
        build = self.configure("subdirectory", f"-DTIMECACHED={self.arguments.source}")
        run("ninja", "-C", build, "CMakeFiles/hello.dir" + self.hello + ".o")

    def all(self):
        with Server(self.arguments.server, self.directory) as self.server:
            for test in (self.install, self.package, self.pkg_config, self.subdirectory):
                begin = time.monotonic()
                test()
                print(f"{test.__name__}: passed in {time.monotonic() - begin:.1f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--build", "--source", "--server", "--compiler"):
        parser.add_argument(name, required=True)
    directory = tempfile.mkdtemp(prefix="timecached-install-")
    try:
        Tests(parser.parse_args(), directory).all()
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
