"""What the chart renders, checked for several values files: by helm, by Kubernetes'
own schemas, by the server itself, and by what we want of a deployment. ./dev deploy
--check runs it, with HELM, KUBECONFORM, SCHEMAS (a directory, see schemas.py) and
TIMECACHED (the server's program) in the environment; none of them is optional."""

import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

import chart
import yaml

HELM_TEST = "helm.sh/hook"
PORTS = {"grpc": 7171, "http-metrics": 7172, "health": 7173}
SECONDS_TO_SPARE = 10
CUSTOM_GROUPS = {"monitoring.coreos.com/v1", "cert-manager.io/v1"}
# The values files that ask for kinds of an operator.
WITH_CUSTOM_KINDS = {"monitoring", "cert-manager"}


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


def server_container(objects):
    (found,) = [
        container
        for container in server_spec(objects)["containers"]
        if container["name"] == "timecached"
    ]
    return found


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
        container = server_container(objects)
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
                    if mount["name"] not in {"data", "extra"}:
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
        container = server_container(objects)
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
            self.assertEqual(
                bool(groups & CUSTOM_GROUPS), name in WITH_CUSTOM_KINDS, name
            )


class OptionsTest(unittest.TestCase):
    """What each option of the values makes of the objects."""

    @staticmethod
    def of_values(name):
        return chart.render("--values", chart.VALUES / f"{name}.yaml")

    @staticmethod
    def rendered(*settings):
        return chart.render(*(a for setting in settings for a in ("--set", setting)))

    def client_service(self, objects):
        (service,) = [
            found
            for found in of_kind(objects, "Service")
            if found["spec"].get("clusterIP") != "None"
        ]
        return service

    def test_the_image_s_registry_is_said_once_for_all(self):
        for settings, image in [
            ((), "timecached:0.1.0"),
            (("image.registry=r.example:5000/a",), "r.example:5000/a/timecached:0.1.0"),
            (("global.imageRegistry=g.example",), "g.example/timecached:0.1.0"),
            (
                ("global.imageRegistry=g.example", "image.registry=r.example"),
                "r.example/timecached:0.1.0",
            ),
            (("image.registry=r.example", "image.tag=0.2"), "r.example/timecached:0.2"),
        ]:
            for name, _, spec in pod_templates(self.rendered(*settings)):
                for container in containers(spec):
                    self.assertEqual(container["image"], image, name)

    def test_the_pull_policy_is_that_of_all_containers(self):
        for _, _, spec in pod_templates(self.rendered("image.pullPolicy=Never")):
            for container in containers(spec):
                self.assertEqual(container["imagePullPolicy"], "Never")

    def test_users_can_be_left_to_the_cluster(self):
        for _, _, spec in pod_templates(self.of_values("openshift")):
            self.assertEqual(
                spec["securityContext"],
                {
                    "runAsNonRoot": True,
                    "fsGroupChangePolicy": "OnRootMismatch",
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
            )

    def test_users_can_be_chosen(self):
        objects = self.rendered(
            "podSecurityContext.runAsUser=1001",
            "podSecurityContext.fsGroup=2002",
            "containerSecurityContext.readOnlyRootFilesystem=false",
        )
        for _, _, spec in pod_templates(objects):
            self.assertEqual(spec["securityContext"]["runAsUser"], 1001)
            self.assertEqual(spec["securityContext"]["runAsGroup"], 65532)
            self.assertEqual(spec["securityContext"]["fsGroup"], 2002)
            for container in containers(spec):
                context = container["securityContext"]
                self.assertIs(context["readOnlyRootFilesystem"], False)
                self.assertEqual(context["capabilities"], {"drop": ["ALL"]})

    def test_a_claim_that_is_there_is_mounted_in_place_of_one_s_own(self):
        objects = self.of_values("openshift")
        (stateful_set,) = of_kind(objects, "StatefulSet")
        self.assertNotIn("volumeClaimTemplates", stateful_set["spec"])
        self.assertIn(
            {
                "name": "data",
                "persistentVolumeClaim": {"claimName": "timecached-data"},
            },
            server_spec(objects)["volumes"],
        )
        self.assertIn(
            {"name": "data", "mountPath": "/var/lib/timecached"},
            server_container(objects)["volumeMounts"],
        )

    def test_claims_have_annotations(self):
        objects = self.rendered("persistence.enabled=true", "persistence.annotations.a=b")
        (stateful_set,) = of_kind(objects, "StatefulSet")
        (claim,) = stateful_set["spec"]["volumeClaimTemplates"]
        self.assertEqual(claim["metadata"]["annotations"], {"a": "b"})

    def test_containers_run_beside_the_server_and_before_it(self):
        spec = server_spec(self.of_values("extra"))
        self.assertEqual([c["name"] for c in spec["initContainers"]], ["before"])
        self.assertEqual([c["name"] for c in spec["containers"]], ["timecached", "beside"])

    def test_flags_and_variables_reach_the_server(self):
        container = server_container(self.of_values("extra"))
        self.assertEqual(
            container["args"],
            [
                "--config",
                "/etc/timecached/config/timecached.yaml",
                "--log-level",
                "debug",
            ],
        )
        self.assertEqual(
            container["envFrom"], [{"secretRef": {"name": "variables", "optional": True}}]
        )

    def test_the_flags_of_the_example_are_the_server_s(self):
        text = config_text(self.of_values("extra"))
        result = check_config(text, *server_container(self.of_values("extra"))["args"][2:])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("level: debug", result.stdout)

    def test_the_update_strategy_can_be_chosen(self):
        for objects, strategy in [
            (chart.render(), "RollingUpdate"),
            (self.of_values("openshift"), "OnDelete"),
        ]:
            (stateful_set,) = of_kind(objects, "StatefulSet")
            self.assertEqual(stateful_set["spec"]["updateStrategy"], {"type": strategy})

    def test_the_documented_installation_renders_what_it_is_for(self):
        document = (chart.DEPLOY.parent / "docs/OPERATIONS.md").read_text()
        (command,) = re.findall(r"^\$ (helm install (?:.*\\\n)*.*)$", document, re.M)
        words = shlex.split(command)
        self.assertEqual(words[2:4], ["timecached", "deploy/helm/timecached"])
        settings = [a for a, flag in zip(words[1:], words) if flag == "--set"]
        self.assertGreaterEqual(len(settings), 4)
        objects = self.rendered(*settings)
        self.assertEqual(
            server_container(objects)["image"],
            "registry.example/team/timecached:0.1.0",
        )
        self.assertIn("tls.crt", config_text(objects))

    def test_the_service_of_a_load_balancer_has_its_fields(self):
        service = self.client_service(self.of_values("cert-manager"))
        self.assertEqual(service["metadata"]["labels"]["example.com/tier"], "front")
        spec = service["spec"]
        del spec["selector"], spec["ports"]
        self.assertEqual(
            spec,
            {
                "type": "LoadBalancer",
                "loadBalancerIP": "192.0.2.7",
                "loadBalancerClass": "example.com/internal",
                "loadBalancerSourceRanges": ["198.51.100.0/24"],
                "allocateLoadBalancerNodePorts": False,
                "externalTrafficPolicy": "Local",
                "internalTrafficPolicy": "Local",
                "ipFamilyPolicy": "PreferDualStack",
                "ipFamilies": ["IPv4"],
                "externalIPs": ["192.0.2.8"],
            },
        )

    def test_a_node_port_can_be_chosen(self):
        (port,) = self.client_service(self.of_values("extra"))["spec"]["ports"]
        self.assertEqual(port["nodePort"], 31717)

    def test_the_headless_service_has_annotations(self):
        (headless,) = [
            service
            for service in of_kind(self.of_values("cert-manager"), "Service")
            if service["spec"].get("clusterIP") == "None"
        ]
        self.assertEqual(headless["metadata"]["annotations"], {"example.com/dns": "none"})

    def test_common_labels_and_annotations_are_on_everything_but_selectors(self):
        objects = self.of_values("extra")
        everything = [found["metadata"] for found in objects]
        everything += [metadata for _, metadata, _ in pod_templates(objects)]
        for metadata in everything:
            self.assertEqual(metadata["labels"]["example.com/cost-center"], "42")
            self.assertIn("example.com/owner", metadata["annotations"])
            # The selectors' labels are not to be changed.
            self.assertRegex(
                metadata["labels"]["app.kubernetes.io/name"], "^timecached(-test)?$"
            )
        for kind in "StatefulSet", "PodDisruptionBudget":
            (found,) = of_kind(objects, kind)
            self.assertEqual(len(found["spec"]["selector"]["matchLabels"]), 2)
        # What is said of one object wins.
        annotations = self.client_service(objects)["metadata"]["annotations"]
        self.assertEqual(annotations["example.com/owner"], "front")

    def test_a_config_map_that_is_there_takes_the_place_of_the_chart_s(self):
        objects = self.rendered("existingConfigMap=mine")
        self.assertEqual(of_kind(objects, "ConfigMap"), [])
        self.assertIn(
            {"name": "config", "configMap": {"name": "mine"}},
            server_spec(objects)["volumes"],
        )
        (stateful_set,) = of_kind(objects, "StatefulSet")
        self.assertNotIn("annotations", stateful_set["spec"]["template"]["metadata"])

    def test_choices_that_do_not_go_together_are_refused_with_any_config_map(self):
        result = chart.template(
            "--set", "existingConfigMap=mine", "--set", "tls.enabled=true", check=False
        )
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("tls.enabled needs tls.secretName", result.stderr)

    def test_cert_manager_makes_the_secret_that_the_server_reads(self):
        objects = self.of_values("cert-manager")
        (certificate,) = of_kind(objects, "Certificate")
        spec = certificate["spec"]
        (volume,) = [
            volume for volume in server_spec(objects)["volumes"] if volume["name"] == "tls"
        ]
        self.assertEqual(volume["secret"]["secretName"], spec["secretName"])
        self.assertEqual(
            spec["issuerRef"],
            {"name": "letters", "kind": "ClusterIssuer", "group": "cert-manager.io"},
        )
        self.assertEqual(spec["privateKey"]["rotationPolicy"], "Always")
        self.assertEqual((spec["duration"], spec["renewBefore"]), ("2160h", "360h"))
        self.assertLessEqual({"127.0.0.1", "192.0.2.7"}, set(spec["ipAddresses"]))
        self.assertLessEqual(
            {
                "cache.example",
                "localhost",
                "timecached",
                "timecached.timecached.svc",
                "timecached.timecached.svc.cluster.local",
                "*.timecached-headless.timecached.svc.cluster.local",
            },
            set(spec["dnsNames"]),
        )

    def test_the_certificate_s_secret_can_be_named(self):
        objects = self.rendered(
            "tls.enabled=true",
            "tls.certManager.enabled=true",
            "tls.certManager.issuerRef.name=a",
            "tls.secretName=mine",
        )
        (certificate,) = of_kind(objects, "Certificate")
        self.assertEqual(certificate["spec"]["secretName"], "mine")

    def test_the_monitor_relabels(self):
        (monitor,) = of_kind(self.of_values("monitoring"), "ServiceMonitor")
        spec = monitor["spec"]
        (endpoint,) = spec["endpoints"]
        self.assertEqual(endpoint["relabelings"][0]["targetLabel"], "node")
        self.assertEqual(endpoint["metricRelabelings"][0]["action"], "drop")
        self.assertIs(endpoint["honorLabels"], True)
        self.assertEqual(spec["targetLabels"], ["app.kubernetes.io/version"])
        # From another namespace it must say where the service is.
        self.assertEqual(spec["namespaceSelector"], {"matchNames": [chart.NAMESPACE]})
        self.assertEqual(
            monitor["metadata"]["annotations"], {"example.com/owner": "cache"}
        )


class NotesTest(unittest.TestCase):
    """What helm says after an installation, and whether its commands can be run."""

    def notes(self, *settings):
        """helm shows them to a cluster only: here they are a template as the others."""
        with tempfile.TemporaryDirectory() as directory:
            copy = pathlib.Path(directory) / "timecached"
            shutil.copytree(chart.CHART, copy)
            notes = copy / "templates" / "NOTES.txt"
            text = notes.read_text()
            notes.unlink()
            (copy / "templates" / "_notes.tpl").write_text(
                '{{ define "notes" }}' + text + "{{ end }}"
            )
            (copy / "templates" / "notes.yaml").write_text(
                'notes: {{ include "notes" . | toJson }}'
            )
            arguments = [a for setting in settings for a in ("--set", setting)]
            shown = ["--show-only", "templates/notes.yaml"]
            return yaml.safe_load(
                chart.template(*shown, *arguments, where=copy).stdout
            )["notes"]

    def test_they_say_what_a_restart_keeps(self):
        notes = self.notes()
        self.assertIn("config.namespaces are there again, empty", notes)
        self.assertIn("created by API\nare gone", notes)
        self.assertIn("the ConfigMap mine are there", self.notes("existingConfigMap=mine"))

    def test_they_say_where_the_image_comes_from(self):
        notes = self.notes()
        self.assertIn("timecached:0.1.0 (pullPolicy IfNotPresent)", notes)
        self.assertIn("No public registry has it", notes)
        notes = self.notes("image.registry=r.example", "image.pullPolicy=Always")
        self.assertIn("r.example/timecached:0.1.0 (pullPolicy Always)", notes)
        self.assertNotIn("No public registry", notes)

    def test_commands_name_what_the_chart_makes(self):
        notes = self.notes("restartOnConfigChange=false")
        objects = chart.render()
        (stateful_set,) = of_kind(objects, "StatefulSet")
        pod = f"{stateful_set['metadata']['name']}-0"
        commands = re.findall(
            r"^  ((?:kubectl|helm) (?:.*\\\n)*.*)$", notes, re.MULTILINE
        )
        self.assertEqual(len(commands), 4, notes)
        for command in commands:
            words = shlex.split(command)
            self.assertEqual(words[1:3], ["-n", chart.NAMESPACE], command)
            if words[3] in ("exec", "debug"):
                self.assertEqual(words[4], pod)
        debug = shlex.split(commands[3])
        self.assertIn(f"--target={server_container(objects)['name']}", debug)
        label = shlex.split(commands[0])[-1]
        (policy,) = of_kind(objects, "NetworkPolicy")
        self.assertIn(
            {"podSelector": {"matchLabels": dict([label.split("=")])}},
            policy["spec"]["ingress"][0]["from"],
        )

    def test_what_runs_in_the_pod_runs_here(self):
        (command,) = re.findall(r"-- (timecachectl .*)$", self.notes(), re.MULTILINE)
        program, *arguments = shlex.split(command)
        address = arguments[arguments.index("--address") + 1]
        config = yaml.safe_load(config_text(chart.render()))
        self.assertEqual(address.split(":")[1], config["health_address"].split(":")[1])
        health = check_health(program, arguments)
        self.assertEqual(health.stdout, "SERVING\n", health.stderr)


class DefaultTest(unittest.TestCase):
    def test_the_chart_holds_no_links(self):
        self.assertEqual(
            [path for path in chart.CHART.rglob("*") if path.is_symlink()], []
        )

    def test_the_chart_s_copies_are_their_sources(self):
        files = set((chart.CHART / "files").iterdir())
        self.assertEqual(files, set(chart.COPIES))
        for copy, source in chart.COPIES.items():
            self.assertEqual(
                copy.read_bytes(),
                source.read_bytes(),
                f"{copy.name} is not {source}: ./dev deploy",
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
        self.refused("needs tls.enabled=true", "tls.certManager.enabled=true")
        self.refused(
            "needs tls.certManager.issuerRef.name",
            "tls.enabled=true",
            "tls.certManager.enabled=true",
        )
        self.refused(
            "for replicaCount=1",
            "replicaCount=2",
            "service.enabled=false",
            "persistence.enabled=true",
            "persistence.existingClaim=a",
        )
        self.refused("needs persistence.enabled", "persistence.existingClaim=a")
        self.refused("need service.type=NodePort", "service.nodePort=30000")
        self.refused("need service.type=LoadBalancer", "service.loadBalancerIP=192.0.2.1")

    def test_the_schema_knows_the_configuration_s_fields(self):
        schema = json.loads((chart.CHART / "values.schema.json").read_text())
        config = schema["properties"]["config"]["properties"]
        namespace = config["namespaces"]["items"]["properties"]
        for known, file, message in [
            (config["limits"], "config/v1/config.proto", "ServerLimits"),
            (config["log"], "config/v1/config.proto", "LogConfig"),
            (config["debug"], "config/v1/config.proto", "DebugConfig"),
            (namespace["options"], "v1/namespaces.proto", "NamespaceOptions"),
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
        self.refused("image.registry", "image.registry=https://r.example")
        self.refused("externalTrafficPolicy", "service.externalTrafficPolicy=Near")
        self.refused("nodePort", "service.nodePort=70000")
        self.refused("updateStrategy.type", "updateStrategy.type=Recreate")
        self.refused("existingConfigMap", "existingConfigMap=Upper")
        self.refused("duration", "tls.certManager.duration=90d")
        self.refused(unknown, "tls.certManager.issuer=x")
        self.refused(unknown, "service.loadBalancerIp=x")


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
    text = (chart.DEPLOY.parent / "proto/timecache" / file).read_text()
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


def check_health(program, arguments):
    """A probe of the chart's, of a server that listens elsewhere."""
    with tempfile.TemporaryDirectory() as directory:
        address = f"unix:{directory}/health"
        config = pathlib.Path(directory) / "timecached.yaml"
        config.write_text(
            f"listeners:\n  - address: unix:{directory}/socket\n"
            f"health_address: {address}\n"
        )
        server = subprocess.Popen(
            [os.environ["TIMECACHED"], "--config", config], stderr=subprocess.PIPE
        )
        try:
            while b"server_started" not in server.stderr.readline():
                assert server.poll() is None
            where = arguments.index("--address") + 1
            client = pathlib.Path(os.environ["TIMECACHED"]).parent.parent / "client/cli"
            return subprocess.run(
                [client / program, *arguments[:where], address, *arguments[where + 1 :]],
                capture_output=True,
                text=True,
            )
        finally:
            server.terminate()
            server.communicate()


def check_config(text, *flags):
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
            [os.environ["TIMECACHED"], "--config", config, "--check-config", *flags],
            capture_output=True,
            text=True,
        )


if __name__ == "__main__":
    unittest.main()
