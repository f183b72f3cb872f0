"""What the chart renders, for several values files: checked by helm, by Kubernetes'
own schemas, by the server itself, and by what we want of a deployment."""

import functools
import os
import re
import unittest

import yaml

import chart
from objects import (
    PORTS,
    config_text,
    containers,
    of_kind,
    pod_templates,
    server,
    server_container,
    server_spec,
    without_console,
)
from programs import check_config, kubeconform

SECONDS_TO_SPARE = 10
# In which a slow disk takes what waits for it.
FLUSH_SECONDS = 30
MIN_START_SECONDS = 30
MIN_RECOVERY_SECONDS = 300
CUSTOM_GROUPS = {"monitoring.coreos.com/v1", "cert-manager.io/v1"}
# The values files that ask for kinds of an operator.
WITH_CUSTOM_KINDS = {"monitoring", "cert-manager"}


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


def files_of(config):
    """All that a configuration names under a field of a file."""
    if isinstance(config, list):
        for item in config:
            yield from files_of(item)
    elif isinstance(config, dict):
        for name, value in config.items():
            if isinstance(value, str) and re.search("(^|_)file$", name):
                yield value
            elif name == "property_files":
                yield from value.values()
            else:
                yield from files_of(value)


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
            elsewhere = found["apiVersion"] == "monitoring.coreos.com/v1"
            self.assertEqual(
                found["metadata"]["namespace"],
                "monitoring" if elsewhere else chart.NAMESPACE,
            )

    @of_each
    def test_pods_are_restricted(self, objects):
        for _, _, spec in pod_templates(objects):
            context = spec["securityContext"]
            self.assertIs(context["runAsNonRoot"], True)
            # Unset, it is the image's or the cluster's.
            self.assertGreater(context.get("runAsUser", 65532), 0)
            self.assertGreater(context.get("runAsGroup", 65532), 0)
            self.assertEqual(context["seccompProfile"], {"type": "RuntimeDefault"})
            self.assertIs(spec["automountServiceAccountToken"], False)
            for forbidden in "hostNetwork", "hostPID", "hostIPC":
                self.assertNotIn(forbidden, spec)
            for volume in spec.get("volumes", []):
                self.assertNotIn("hostPath", volume)
            for container in containers(spec):
                self.assertEqual(
                    {"privileged": False} | container["securityContext"],
                    {
                        "privileged": False,
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
                    container["image"],
                    r"^[a-z0-9./:-]+(:[0-9.]+|@sha256:[0-9a-f]{64})$",
                )

    @of_each
    def test_probes_ask_the_health_port(self, objects):
        config = yaml.safe_load(config_text(objects))
        container = server_container(objects)
        paths = {"readinessProbe": "/readyz"}
        for probe in "startupProbe", "readinessProbe", "livenessProbe":
            if "cluster" in config:
                # A standby is alive, and not ready.
                self.assertEqual(
                    container[probe]["httpGet"],
                    {"port": "http-metrics", "path": paths.get(probe, "/healthz")},
                )
                continue
            port = container[probe]["grpc"]["port"]
            self.assertEqual(port, PORTS["health"])
            self.assertEqual(config["health_address"], f"[::]:{port}")

    @of_each
    def test_a_drain_has_its_time(self, objects):
        config = yaml.safe_load(config_text(objects))
        spec = server_spec(objects)
        drain = seconds(config["drain_delay"]) + seconds(config["grace_period"])
        spare = SECONDS_TO_SPARE + (FLUSH_SECONDS if config.keys() & {"journal", "cluster"} else 0)
        self.assertGreaterEqual(spec["terminationGracePeriodSeconds"], drain + spare)
        liveness = spec["containers"][0]["livenessProbe"]
        self.assertGreater(
            liveness["periodSeconds"] * liveness["failureThreshold"], drain
        )

    @of_each
    def test_ports_are_the_configuration_s(self, objects):
        container = server_container(objects)
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        self.assertEqual(ports, PORTS)
        config = yaml.safe_load(config_text(objects))
        self.assertEqual(
            [config["listeners"][0]["address"], config["http"]["address"]],
            ["[::]:7171", "[::]:7172"],
        )
        for service in of_kind(without_console(objects), "Service"):
            for port in service["spec"]["ports"]:
                self.assertIn(port["targetPort"], ports)

    @of_each
    def test_selectors_choose_the_server_and_nothing_else(self, objects):
        services = of_kind(without_console(objects), "Service")
        selectors = [o["spec"]["selector"] for o in services]
        (budget,) = of_kind(objects, "PodDisruptionBudget")
        for found in server(objects), budget:
            selectors.append(found["spec"]["selector"]["matchLabels"])
        (policy,) = of_kind(objects, "NetworkPolicy")
        selectors.append(policy["spec"]["podSelector"]["matchLabels"])
        for name, metadata, _ in pod_templates(objects):
            for selector in selectors:
                chosen = selector.items() <= metadata["labels"].items()
                made = re.match("(StatefulSet|Deployment)/(?!.*-console$)", name) is not None
                self.assertEqual(chosen, made, name)

    @of_each
    def test_the_stateful_set_s_service_is_headless(self, objects):
        for stateful_set in of_kind(objects, "StatefulSet"):
            (headless,) = [
                service
                for service in of_kind(objects, "Service")
                if service["metadata"]["name"] == stateful_set["spec"]["serviceName"]
            ]
            self.assertEqual(headless["spec"]["clusterIP"], "None")

    @of_each
    def test_two_servers_never_share_a_service_or_a_volume(self, objects):
        """A StatefulSet ends a pod before it makes the next of its name."""
        for deployment in of_kind(without_console(objects), "Deployment"):
            self.assertEqual(deployment["spec"]["strategy"], {"type": "Recreate"})
            self.assertLessEqual(deployment["spec"]["replicas"], 1)
            for volume in server_spec(objects)["volumes"]:
                self.assertNotIn("persistentVolumeClaim", volume)

    @of_each
    def test_a_journal_is_on_its_volume_and_a_volume_has_a_journal(self, objects):
        directory = yaml.safe_load(config_text(objects)).get("journal", {}).get("directory")
        volumes = [
            mount["mountPath"]
            for mount in server_container(objects)["volumeMounts"]
            if mount["name"] == "journal"
        ]
        self.assertEqual(volumes, [os.path.dirname(directory)] if directory else [])
        self.assertEqual(bool(directory), "journal" in self.claims(objects))

    @staticmethod
    def claims(objects):
        """The volumes that outlive a pod."""
        templates = server(objects)["spec"].get("volumeClaimTemplates", [])
        return {claim["metadata"]["name"] for claim in templates} | {
            volume["name"]
            for volume in server_spec(objects)["volumes"]
            if "persistentVolumeClaim" in volume
        }

    @of_each
    def test_a_start_has_time_for_a_recovery(self, objects):
        probe = server_container(objects)["startupProbe"]
        seconds = probe["periodSeconds"] * probe["failureThreshold"]
        self.assertGreaterEqual(seconds, MIN_START_SECONDS)
        if "journal" in yaml.safe_load(config_text(objects)):
            self.assertGreaterEqual(seconds, MIN_RECOVERY_SECONDS)

    @of_each
    def test_the_network_policy_names_who_may_reach_each_port(self, objects):
        (policy,) = of_kind(objects, "NetworkPolicy")
        spec = policy["spec"]
        self.assertEqual(spec["policyTypes"], ["Ingress", "Egress"])
        self.assertEqual("egress" in spec, "cluster" in yaml.safe_load(config_text(objects)))
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
        claims = self.claims(objects)
        for _, _, spec in pod_templates(objects):
            volumes = {volume["name"] for volume in spec.get("volumes", [])}
            for container in containers(spec):
                for mount in container.get("volumeMounts", []):
                    self.assertIn(mount["name"], volumes | claims)
                    if mount["name"] not in {"journal", "extra"}:
                        self.assertIs(mount["readOnly"], True)
                        # A subPath never sees a rotated Secret.
                        self.assertNotIn("subPath", mount)

    @of_each
    def test_secrets_are_mounted_and_never_rendered(self, objects):
        self.assertEqual(of_kind(objects, "Secret"), [])
        for volume in server_spec(objects)["volumes"]:
            for kind in {"secret", "projected"} & volume.keys():
                self.assertEqual(volume[kind]["defaultMode"], 0o440)

    @of_each
    def test_files_that_the_configuration_names_are_mounted(self, objects):
        container = server_container(objects)
        mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
        self.assertIn(os.path.dirname(container["args"][1]), mounts)
        for path in files_of(yaml.safe_load(config_text(objects))):
            self.assertIn(os.path.dirname(path), mounts)

    @of_each
    def test_the_server_takes_the_configuration(self, objects):
        flags = [flag.replace("$(POD_NAME)", "pod-0")
                 for flag in server_container(objects)["args"][2:]
                 if flag.startswith(("--node", "--advertise"))]
        result = check_config(config_text(objects), *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        for port in PORTS.values():
            self.assertIn(f"[::]:{port}", result.stdout)

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
            self.assertEqual(
                bool(groups & CUSTOM_GROUPS), name in WITH_CUSTOM_KINDS, name
            )
