"""The chart itself, and what it renders without values."""

import unittest

import yaml

import chart
from objects import of_kind, server
from programs import kubeconform

HELM_TEST = "helm.sh/hook"


class DefaultTest(unittest.TestCase):
    def test_the_chart_holds_no_links(self):
        self.assertEqual(
            [path for path in chart.CHART.rglob("*") if path.is_symlink()], []
        )

    def test_the_manifest_is_what_the_chart_renders(self):
        self.assertEqual(
            chart.MANIFEST.read_text(),
            chart.manifest(),
            "deploy/kubernetes.yaml is not what the chart renders: ./dev deploy",
        )

    def test_the_manifest_is_whole(self):
        objects = list(yaml.safe_load_all(chart.MANIFEST.read_text()))
        (namespace,) = of_kind(objects, "Namespace")
        self.assertEqual(namespace["metadata"]["name"], chart.NAMESPACE)
        for found in objects:
            self.assertNotIn(HELM_TEST, found["metadata"].get("annotations", {}))
        result = kubeconform(chart.MANIFEST.read_text())
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_schemas_refuse_a_field_that_is_not_there(self):
        text = chart.template().stdout
        for field, other in [
            ("strategy:", "strategies:"),
            ("failureThreshold:", "failureTreshold:"),
            ("policyTypes:", "policyType:"),
        ]:
            self.assertIn(field, text)
            result = kubeconform(text.replace(field, other))
            self.assertNotEqual(result.returncode, 0, field)
            self.assertIn(other[:-1], result.stdout)

    def test_a_changed_configuration_restarts_the_pod_if_asked_to(self):
        def annotations(*arguments):
            pod = server(chart.render(*arguments))["spec"]["template"]
            return pod["metadata"].get("annotations")

        other = ["--set", "config.log.level=debug"]
        self.assertEqual(annotations(), annotations(*other))
        restarts = ["--set", "restartOnConfigChange=true"]
        self.assertNotEqual(annotations(*restarts), annotations(*restarts, *other))
