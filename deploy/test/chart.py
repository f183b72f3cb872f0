"""The chart, rendered by helm ($HELM), and the manifest that is made from it.

chart.py writes deploy/kubernetes.yaml.
"""

import os
import pathlib
import re
import subprocess

import yaml

DEPLOY = pathlib.Path(__file__).resolve().parent.parent
CHART = DEPLOY / "helm" / "timecached"
MANIFEST = DEPLOY / "kubernetes.yaml"
VALUES = DEPLOY / "test" / "values"
KUBERNETES_VERSION = "1.31.4"
NAMESPACE = "timecached"

HEADER = """\
# One timecached in a cluster, in a namespace of its own:
#
#   kubectl apply -f deploy/kubernetes.yaml
#   kubectl -n timecached port-forward service/timecached 7171
#
# Its image, timecached:0.1.0, is in no public registry: build deploy/Dockerfile, then load
# it into the nodes, or push it to a registry of yours and change `image` below.
#
# Entries are in memory: a restart of the pod empties its maps. Namespaces of the
# ConfigMap are there again, empty; those that were created by API are gone.
#
# It speaks plain text, and a NetworkPolicy lets in pods of the namespace that have the
# label timecached.dev/client: "true". For TLS, access rules and the rest, install the
# chart, deploy/helm/timecached. This file is the chart with its default values, written
# by ./dev deploy: change the chart, not this.
apiVersion: v1
kind: Namespace
metadata:
  name: timecached
  labels:
    pod-security.kubernetes.io/enforce: restricted
"""

# What is said of Helm is not true of a manifest.
OF_HELM = re.compile(
    r"^ +(helm\.sh/chart|app\.kubernetes\.io/managed-by): .*\n|^# Source: .*\n", re.M
)


def helm(*arguments, check=True):
    return subprocess.run(
        [os.environ.get("HELM", "helm"), *map(str, arguments)],
        check=check,
        capture_output=True,
        text=True,
    )


def template(*arguments, check=True, where=CHART):
    """helm template with these arguments."""
    return helm(
        "template",
        "timecached",
        where,
        "--namespace",
        NAMESPACE,
        "--kube-version",
        KUBERNETES_VERSION,
        *arguments,
        check=check,
    )


def render(*arguments):
    """The objects that the chart renders."""
    documents = yaml.safe_load_all(template(*arguments).stdout)
    return [document for document in documents if document]


def manifest():
    """What deploy/kubernetes.yaml should hold."""
    return HEADER + OF_HELM.sub("", template("--skip-tests").stdout)


if __name__ == "__main__":
    MANIFEST.write_text(manifest())
