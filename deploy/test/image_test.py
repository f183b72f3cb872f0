"""The container's image."""

import re
import unittest

import chart
from objects import PORTS, server_spec
from programs import check_config


class ImageTest(unittest.TestCase):
    """What the chart and the image must agree on."""

    dockerfile = (chart.DEPLOY / "Dockerfile").read_text()

    def instruction(self, name):
        return re.findall(rf"^{name} (.*)$", self.dockerfile, re.M)[-1]

    def test_the_server_takes_the_image_s_configuration(self):
        path = chart.DEPLOY / "container/timecached.yaml"
        result = check_config(path.read_text())
        self.assertEqual(result.returncode, 0, result.stderr)
        for port in PORTS.values():
            self.assertIn(f"[::]:{port}", result.stdout)

    def test_ports_user_and_version(self):
        self.assertEqual(
            self.instruction("EXPOSE"), " ".join(map(str, PORTS.values()))
        )
        spec = server_spec(chart.render())
        context = spec["securityContext"]
        self.assertEqual(
            self.instruction("USER"), f"{context['runAsUser']}:{context['runAsGroup']}"
        )
        version = self.instruction("ARG").removeprefix("VERSION=")
        self.assertEqual(spec["containers"][0]["image"], f"timecached:{version}")
        cmake = (chart.DEPLOY.parent / "CMakeLists.txt").read_text()
        self.assertIn(f"project(timecached VERSION {version} ", cmake)

    def test_the_clients_have_the_same_version(self):
        version = self.instruction("ARG").removeprefix("VERSION=")
        client = chart.DEPLOY.parent / "client"
        of_maven = f"<artifactId>timecache-client</artifactId>\n{{}}<version>{version}</version>"
        for path, line in {
            "python/pyproject.toml": f'version = "{version}"',
            "python/src/timecached/__init__.py": f'__version__ = "{version}"',
            "node/package.json": f'"version": "{version}"',
            "java/pom.xml": of_maven.format("  "),
            "java/benchmark/pom.xml": of_maven.format("      "),
            "java/examples/pom.xml": of_maven.format("      "),
            "java/examples/spring-session/pom.xml": of_maven.format("      "),
        }.items():
            with self.subTest(path):
                self.assertIn(line, (client / path).read_text("utf-8"))
