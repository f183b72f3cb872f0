"""The functions of ./dev, called by tests."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def command(script):
    """Runs a script that has read ./dev: its functions, and none of its commands."""
    return ["bash", "-c", f'source "{ROOT}/dev"\n{script}', "test"]


def bash(script, **options):
    return subprocess.run(
        command(script), capture_output=True, text=True, check=False, **options)
