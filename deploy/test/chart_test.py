"""What the chart renders, checked for several values files: by helm, by Kubernetes'
own schemas, by the server itself, and by what we want of a deployment. ./dev deploy
--check runs it, with HELM, KUBECONFORM, SCHEMAS (a directory, see schemas.py) and
TIMECACHED (the server's program) in the environment; none of them is optional."""

import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import chart
import yaml

HELM_TEST = "helm.sh/hook"
PORTS = {"grpc": 7171, "http-metrics": 7172, "health": 7173}
SECONDS_TO_SPARE = 10
CUSTOM_GROUPS = {"monitoring.coreos.com/v1"}


def of_kind(objects, kind):
    return [found for found in objects if found["kind"] == kind]


def pod_templates(objects):
    """The (name, metadata, spec) of everything that becomes a pod."""
    for found in objects:
        name = f"{found['kind']}/{found['metadata']['name']}"
        if found["kind"] == "Pod":
            yield name, found["metadata"], found["spec"]
        elif "template" in found.get("spec", {}):
            template = found["spec"]["template"]
            yield name, template["metadata"], template["spec"]


def containers(spec):
    return spec.get("initContainers", []) + spec["containers"]


def server_spec(objects):
    (stateful_set,) = of_kind(objects, "StatefulSet")
    return stateful_set["spec"]["template"]["spec"]


def config_text(objects):
    name = server_spec(objects)["volumes"][0]["configMap"]["name"]
    (config,) = [
        found
        for found in of_kind(objects, "ConfigMap")
        if found["metadata"]["name"] == name
    ]
    return config["data"]["timecached.yaml"]


def seconds(text):
    assert text.endswith("s"), text
    return int(text[:-1])


def of_each(test):
    """The test of one rendering becomes one of all."""

    @functools.wraps(test)
    def run(self):
        for name, objects in self.rendered.items():
            with self.subTest(values=name):
                test(self, objects)

    return run


class RenderedTest(unittest.TestCase):
    """Each test is of every values file."""

    @classmethod
    def setUpClass(cls):
        cls.rendered = {
            path.stem: chart.render("--values", path)
            for path in sorted(chart.VALUES.glob("*.yaml"))
        }
        assert len(cls.rendered) >= 6, cls.rendered.keys()

    def test_helm_lint(self):
        for path in chart.VALUES.glob("*.yaml"):
            result = chart.helm(
                "lint", "--strict", chart.CHART, "--values", path, check=False
            )
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_kubernetes_schemas(self):
        for path in chart.VALUES.glob("*.yaml"):
            result = kubeconform(chart.template("--values", path).stdout)
            self.assertEqual(result.returncode, 0, result.stdout)
            self.assertRegex(result.stdout, r"Invalid: 0, Errors: 0, Skipped: 0")

    @of_each
    def test_names_are_told_apart(self, objects):
        names = [(o["kind"], o["metadata"]["name"]) for o in objects]
        self.assertEqual(len(names), len(set(names)), names)
        for found in objects:
            self.assertEqual(found["metadata"]["namespace"], chart.NAMESPACE)

    @of_each
    def test_pods_are_restricted(self, objects):
        for _, _, spec in pod_templates(objects):
            context = spec["securityContext"]
            self.assertIs(context["runAsNonRoot"], True)
            self.assertGreater(context["runAsUser"], 0)
            self.assertGreater(context["runAsGroup"], 0)
            self.assertEqual(context["seccompProfile"], {"type": "RuntimeDefault"})
            self.assertIs(spec["automountServiceAccountToken"], False)
            for forbidden in "hostNetwork", "hostPID", "hostIPC":
                self.assertNotIn(forbidden, spec)
            for volume in spec.get("volumes", []):
                self.assertNotIn("hostPath", volume)
            for container in containers(spec):
                self.assertEqual(
                    container["securityContext"],
                    {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                    },
                )
                for port in container.get("ports", []):
                    self.assertNotIn("hostPort", port)

    @of_each
    def test_containers_have_a_limit_of_memory_and_a_fixed_image(self, objects):
        for _, _, spec in pod_templates(objects):
            for container in containers(spec):
                self.assertIn("memory", container["resources"]["limits"])
                self.assertRegex(
                    container["image"], r"^[a-z0-9./-]+(:[0-9.]+|@sha256:[0-9a-f]{64})$"
                )

    @of_each
    def test_probes_ask_the_health_port(self, objects):
        config = yaml.safe_load(config_text(objects))
        (container,) = server_spec(objects)["containers"]
        for probe in "startupProbe", "readinessProbe", "livenessProbe":
            port = container[probe]["grpc"]["port"]
            self.assertEqual(port, PORTS["health"])
            self.assertEqual(config["health_address"], f"0.0.0.0:{port}")

    @of_each
    def test_a_drain_has_its_time(self, objects):
        config = yaml.safe_load(config_text(objects))
        spec = server_spec(objects)
        drain = seconds(config["drain_delay"]) + seconds(config["grace_period"])
        self.assertGreaterEqual(
            spec["terminationGracePeriodSeconds"], drain + SECONDS_TO_SPARE
        )
        liveness = spec["containers"][0]["livenessProbe"]
        self.assertGreater(
            liveness["periodSeconds"] * liveness["failureThreshold"], drain
        )

    @of_each
    def test_ports_are_the_configuration_s(self, objects):
        (container,) = server_spec(objects)["containers"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        self.assertEqual(ports, PORTS)
        config = yaml.safe_load(config_text(objects))
        self.assertEqual(
            [config["listeners"][0]["address"], config["http"]["address"]],
            ["0.0.0.0:7171", "0.0.0.0:7172"],
        )
        for service in of_kind(objects, "Service"):
            for port in service["spec"]["ports"]:
                self.assertIn(port["targetPort"], ports)

    @of_each
    def test_selectors_choose_the_server_and_nothing_else(self, objects):
        selectors = [o["spec"]["selector"] for o in of_kind(objects, "Service")]
        for kind in "StatefulSet", "PodDisruptionBudget":
            (found,) = of_kind(objects, kind)
            selectors.append(found["spec"]["selector"]["matchLabels"])
        (policy,) = of_kind(objects, "NetworkPolicy")
        selectors.append(policy["spec"]["podSelector"]["matchLabels"])
        for name, metadata, _ in pod_templates(objects):
            for selector in selectors:
                chosen = selector.items() <= metadata["labels"].items()
                self.assertEqual(chosen, name.startswith("StatefulSet/"), name)

    @of_each
    def test_the_stateful_set_s_service_is_headless(self, objects):
        (stateful_set,) = of_kind(objects, "StatefulSet")
        (headless,) = [
            service
            for service in of_kind(objects, "Service")
            if service["metadata"]["name"] == stateful_set["spec"]["serviceName"]
        ]
        self.assertEqual(headless["spec"]["clusterIP"], "None")

    @of_each
    def test_the_network_policy_names_who_may_reach_each_port(self, objects):
        (policy,) = of_kind(objects, "NetworkPolicy")
        spec = policy["spec"]
        self.assertEqual(spec["policyTypes"], ["Ingress", "Egress"])
        self.assertNotIn("egress", spec)
        covered = set()
        for rule in spec["ingress"]:
            # Without ports or peers, a rule lets in everything or everybody.
            self.assertTrue(rule["ports"])
            self.assertTrue(rule["from"])
            covered |= {port["port"] for port in rule["ports"]}
        self.assertLessEqual(covered, PORTS.keys())
        self.assertLessEqual({"grpc", "http-metrics"}, covered)

    @of_each
    def test_mounts_have_their_volumes(self, objects):
        claims = {
            claim["metadata"]["name"]
            for found in of_kind(objects, "StatefulSet")
            for claim in found["spec"].get("volumeClaimTemplates", [])
        }
        for _, _, spec in pod_templates(objects):
            volumes = {volume["name"] for volume in spec.get("volumes", [])}
            for container in containers(spec):
                for mount in container.get("volumeMounts", []):
                    self.assertIn(mount["name"], volumes | claims)
                    if mount["name"] not in claims | {"extra"}:
                        self.assertIs(mount["readOnly"], True)
                        # A subPath never sees a rotated Secret.
                        self.assertNotIn("subPath", mount)

    @of_each
    def test_secrets_are_mounted_and_never_rendered(self, objects):
        self.assertEqual(of_kind(objects, "Secret"), [])
        for volume in server_spec(objects)["volumes"]:
            if "secret" in volume:
                self.assertEqual(volume["secret"]["defaultMode"], 0o440)

    @of_each
    def test_files_that_the_configuration_names_are_mounted(self, objects):
        (container,) = server_spec(objects)["containers"]
        mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
        self.assertIn(os.path.dirname(container["args"][1]), mounts)
        for path in files_of(yaml.safe_load(config_text(objects))):
            self.assertIn(os.path.dirname(path), mounts)

    @of_each
    def test_the_server_takes_the_configuration(self, objects):
        result = check_config(config_text(objects))
        self.assertEqual(result.returncode, 0, result.stderr)
        for port in PORTS.values():
            self.assertIn(f"0.0.0.0:{port}", result.stdout)

    def test_monitors_choose_one_service_and_a_port_of_it(self):
        objects = self.rendered["monitoring"]
        (monitor,) = of_kind(objects, "ServiceMonitor")
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        chosen = [
            service
            for service in of_kind(objects, "Service")
            if wanted <= service["metadata"]["labels"].items()
        ]
        self.assertEqual(len(chosen), 1)
        self.assertIn(
            monitor["spec"]["endpoints"][0]["port"],
            [port["name"] for port in chosen[0]["spec"]["ports"]],
        )

    def test_nothing_of_the_operator_s_unless_asked(self):
        for name, objects in self.rendered.items():
            groups = {found["apiVersion"] for found in objects}
            self.assertEqual(bool(groups & CUSTOM_GROUPS), name == "monitoring", name)


class DefaultTest(unittest.TestCase):
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
            ("podManagementPolicy:", "podManagementPolicies:"),
            ("failureThreshold:", "failureTreshold:"),
            ("policyTypes:", "policyType:"),
        ]:
            self.assertIn(field, text)
            result = kubeconform(text.replace(field, other))
            self.assertNotEqual(result.returncode, 0, field)
            self.assertIn(other[:-1], result.stdout)

    def test_a_changed_configuration_restarts_the_pod(self):
        def annotations(*arguments):
            (stateful_set,) = of_kind(chart.render(*arguments), "StatefulSet")
            return stateful_set["spec"]["template"]["metadata"].get("annotations")

        other = ["--set", "config.log.level=debug"]
        self.assertNotEqual(annotations(), annotations(*other))
        stay = ["--set", "restartOnConfigChange=false"]
        self.assertEqual(annotations(*stay), annotations(*stay, *other))


class RefusalTest(unittest.TestCase):
    """What the chart must not take, and what it says."""

    def refused(self, words, *settings):
        arguments = [a for setting in settings for a in ("--set", setting)]
        result = chart.template(*arguments, check=False)
        with self.subTest(settings=settings):
            self.assertNotEqual(result.returncode, 0)
            self.assertRegex(result.stderr, words)

    def test_choices_that_do_not_go_together(self):
        self.refused("plain text to the network", "tls.allowPlaintext=false")
        self.refused("needs tls.secretName", "tls.enabled=true")
        self.refused("need tls.enabled=true", "tls.secretName=a")
        self.refused("outside the cluster", "service.type=LoadBalancer")
        self.refused("outside the cluster", "service.type=NodePort")
        self.refused(
            "needs tls.clientCaSecretName",
            "tls.enabled=true",
            "tls.secretName=a",
            "tls.clientCertificate=required",
        )
        self.refused("needs service.enabled=false", "replicaCount=2")
        self.refused("resources.limits", "resources.limits.memory=null")
        self.refused("cannot be guarded", "config.debug.channelz=true")

    def test_the_schema_knows_the_configuration_s_fields(self):
        schema = json.loads((chart.CHART / "values.schema.json").read_text())
        config = schema["properties"]["config"]["properties"]
        namespace = config["namespaces"]["items"]["properties"]
        for known, file, message in [
            (config["limits"], "config.proto", "ServerLimits"),
            (config["log"], "config.proto", "LogConfig"),
            (config["debug"], "config.proto", "DebugConfig"),
            (namespace["options"], "namespace.proto", "NamespaceOptions"),
        ]:
            self.assertEqual(set(known["properties"]), proto_fields(file, message))

    def test_values_that_the_schema_refuses(self):
        unknown = "Additional property .* is not allowed"
        self.refused(unknown, "nmae=x")
        self.refused(unknown, "image.tga=1")
        self.refused(unknown, "tls.secret=x")
        self.refused(unknown, "config.listeners[0].address=x")
        self.refused(unknown, "networkPolicy.clients[0].podSelectors.a=b")
        self.refused("image.tag", "image.tag=latest")
        self.refused("image.tag", "image.tag=a b")
        self.refused("image.digest", "image.digest=sha256:12")
        self.refused("image.repository", "image.repository=")
        self.refused("image.pullPolicy", "image.pullPolicy=Sometimes")
        self.refused("replicaCount", "replicaCount=-1")
        self.refused("replicaCount", "replicaCount=two")
        self.refused("service.type", "service.type=ExternalName")
        self.refused("service.port", "service.port=70000")
        self.refused("tls.clientCertificate", "tls.clientCertificate=maybe")
        self.refused("tls.secretName", "tls.secretName=Upper")
        self.refused("drainDelaySeconds", "shutdown.drainDelaySeconds=301")
        self.refused("gracePeriodSeconds", "shutdown.gracePeriodSeconds=5s")
        self.refused("config.log.level", "config.log.level=loud")
        self.refused(unknown, "config.limits.max_entires=5")
        self.refused("max_entries", "config.limits.max_entries=-1")
        self.refused("max_memory_bytes", "config.limits.max_memory_bytes=1GB")
        self.refused("max_connection_age", "config.limits.max_connection_age=1 hour")
        self.refused("name is required", "config.namespaces[0].options.ttl=1s")
        self.refused("accessModes", "persistence.accessModes[0]=ReadWriteMany")
        self.refused("maxUnavailable", "podDisruptionBudget.maxUnavailable=-1")
        self.refused("memory", "resources.limits.memory=lots")
        self.refused("periodSeconds", "probes.liveness.periodSeconds=0")
        self.refused("interval", "serviceMonitor.interval=often")


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
            self.assertIn(f"0.0.0.0:{port}", result.stdout)

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


def proto_fields(file, message):
    """The names of a message's fields."""
    text = (chart.DEPLOY.parent / "proto/timecache/v1" / file).read_text()
    body = re.search(rf"^message {message} {{\n(.*?)^}}", text, re.M | re.S)[1]
    return set(re.findall(r"^  [\w. ]+ (\w+) = \d+;", body, re.M))


def files_of(config):
    """All that a configuration names under a field of a file."""
    if isinstance(config, list):
        for item in config:
            yield from files_of(item)
    elif isinstance(config, dict):
        for name, value in config.items():
            if isinstance(value, str) and re.search("(^|_)file$", name):
                yield value
            else:
                yield from files_of(value)


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


def check_config(text):
    """timecached --check-config, with files in the place of the Secrets'."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory)
        for secret in "tls", "client-ca", "access":
            (path / secret).mkdir()
        subprocess.run(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
            "-subj /CN=test -days 30 -keyout tls/tls.key -out tls/tls.crt".split(),
            cwd=path,
            check=True,
            capture_output=True,
        )
        shutil.copy(path / "tls/tls.crt", path / "client-ca/ca.crt")
        (path / "access/access.yaml").write_text(ACCESS_RULES)
        config = path / "timecached.yaml"
        config.write_text(text.replace("/etc/timecached/", f"{directory}/"))
        return subprocess.run(
            [os.environ["TIMECACHED"], "--config", config, "--check-config"],
            capture_output=True,
            text=True,
        )


if __name__ == "__main__":
    unittest.main()
