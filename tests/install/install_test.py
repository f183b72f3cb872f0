"""Builds small programs with the C++ client, and runs them: as installed, by find_package
(static and shared) and by pkg-config, and with its sources as a part of their own build."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "support"))
from server import Server

# What a program that uses the client may see of the flags that it was built with.
FLAGS_OF_OURS = ("-Werror", "-Wall", "-fsanitize", "-fprofile", "-prefix-map", "-fPIC",
                 "-fvisibility", "-DTIMECACHE")


def run(*command, **more):
    """The output of a command, which must succeed."""
    done = subprocess.run(command, check=False, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout


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
            f"-DCMAKE_CXX_COMPILER={self.arguments.compiler}",
            f"-DCMAKE_CXX_COMPILER_LAUNCHER={self.arguments.launcher}",
            "-DCMAKE_BUILD_TYPE=Debug",
            "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", f"-DHELLO={self.hello}", *more)
        self.check_flags(build)
        return build

    def check_flags(self, build):
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
            commands = [each["command"] for each in json.load(file)
                        if self.hello in (each["file"], *self.joined(each["file"]))]
        assert commands
        for command in commands:
            leaked = [flag for flag in FLAGS_OF_OURS if flag in command]
            assert not leaked, f"{leaked} in {command}"

    @staticmethod
    def joined(file):
        """The sources that CMake compiles as this one, if it does so."""
        if "/Unity/" not in file:
            return []
        with open(file, encoding="utf-8") as unity:
            return re.findall(r'#include "(.*)"', unity.read())

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
        # As few sources, without optimisation, headers parsed once: it takes the compiler
        # longest of these tests.
        build = self.configure("subdirectory", f"-DTIMECACHED={self.arguments.source}",
                               "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DCMAKE_UNITY_BUILD=ON",
                               "-DCMAKE_UNITY_BUILD_BATCH_SIZE=64",
                               "-DTIMECACHED_PRECOMPILE=ON")
        run("ninja", "-C", build, "hello")
        self.check_hello(os.path.join(build, "hello"))

    def all(self):
        # A socket's path is short.
        with (tempfile.TemporaryDirectory(prefix="timecached-") as sockets,
              Server(self.arguments.server, listen=f"unix:{sockets}/socket") as self.server):
            for test in (self.install, self.package, self.pkg_config, self.subdirectory):
                begin = time.monotonic()
                test()
                print(f"{test.__name__}: passed in {time.monotonic() - begin:.1f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--build", "--source", "--server", "--compiler"):
        parser.add_argument(name, required=True)
    parser.add_argument("--launcher", default="", help="what runs the compiler, as ccache")
    arguments = parser.parse_args()
    # The same one each time, or ccache would know nothing again.
    directory = os.path.join(arguments.build, "tests/install/work")
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    try:
        Tests(arguments, directory).all()
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
