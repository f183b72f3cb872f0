"""Options of the values."""

import re
import shlex
import unittest

import yaml

import chart
from objects import (
    config_text,
    containers,
    is_console,
    of_kind,
    pod_templates,
    server,
    server_container,
    server_spec,
)
from programs import check_config, start_console
from protos import CONFIG, proto_fields


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
        self.assertNotIn("volumeClaimTemplates", server(objects)["spec"])
        self.assertIn(
            {
                "name": "journal",
                "persistentVolumeClaim": {"claimName": "timecached-journal"},
            },
            server_spec(objects)["volumes"],
        )
        self.assertIn(
            {"name": "journal", "mountPath": "/var/lib/timecached"},
            server_container(objects)["volumeMounts"],
        )

    def test_a_journal_has_a_claim_of_each_pod(self):
        objects = self.rendered(
            "journal.enabled=true",
            "journal.size=3Gi",
            "journal.storageClass=fast",
            "journal.annotations.a=b",
            "journal.accessModes[0]=ReadWriteOncePod",
        )
        (claim,) = server(objects)["spec"]["volumeClaimTemplates"]
        self.assertEqual(
            claim["metadata"], {"name": "journal", "annotations": {"a": "b"}}
        )
        self.assertEqual(
            claim["spec"],
            {
                "accessModes": ["ReadWriteOncePod"],
                "storageClassName": "fast",
                "resources": {"requests": {"storage": "3Gi"}},
            },
        )
        self.assertEqual(server_spec(objects)["securityContext"]["fsGroup"], 65532)

    def test_the_journal_s_configuration_is_said_by_its_values(self):
        config = yaml.safe_load(config_text(self.of_values("journal")))
        self.assertEqual(
            config["journal"],
            {
                "directory": "/var/lib/timecached/journal",
                "max_clock_lag": "5m",
                "max_clock_lead": "800d",
                "reserve_bytes": "256MiB",
            },
        )
        self.assertEqual(set(config["journal"]), proto_fields(CONFIG, "JournalConfig"))
        # The server's own default.
        config = yaml.safe_load(config_text(self.rendered("journal.enabled=true")))
        self.assertEqual(set(config["journal"]), {"directory"})
        self.assertNotIn("journal", yaml.safe_load(config_text(chart.render())))

    def test_nodes_of_a_cluster_are_named_after_their_pods(self):
        objects = self.of_values("cluster")
        container = server_container(objects)
        self.assertEqual(
            container["args"][2:],
            [
                "--node=$(POD_NAME)",
                "--advertise=$(POD_NAME).timecached-headless.timecached.svc:7171",
            ],
        )
        self.assertEqual(
            container["env"],
            [
                {
                    "name": "POD_NAME",
                    "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
                }
            ],
        )
        # Names of standbys are known, and only the owner is ready.
        (headless,) = [
            service
            for service in of_kind(objects, "Service")
            if service["metadata"]["name"] == "timecached-headless"
        ]
        self.assertIs(headless["spec"]["publishNotReadyAddresses"], True)
        self.assertNotIn("publishNotReadyAddresses", self.client_service(objects)["spec"])
        self.assertEqual(server(objects)["spec"]["replicas"], 2)
        self.assertNotIn("volumeClaimTemplates", server(objects)["spec"])
        self.assertEqual(server(objects)["spec"]["updateStrategy"], {"type": "OnDelete"})
        (budget,) = of_kind(objects, "PodDisruptionBudget")
        self.assertEqual(budget["spec"]["minAvailable"], 1)

    def test_a_cluster_s_configuration_is_said_by_its_values(self):
        cluster = yaml.safe_load(config_text(self.of_values("cluster")))["cluster"]
        self.assertEqual(
            cluster,
            {
                "name": "eu",
                "kafka": {
                    "brokers": ["kafka-kafka-bootstrap.kafka.svc:9093"],
                    "properties": {
                        "security.protocol": "SASL_SSL",
                        "sasl.mechanism": "SCRAM-SHA-512",
                        "sasl.username": "timecached-user",
                    },
                    "property_files": {
                        "sasl.password": "/etc/timecached/kafka/sasl.password",
                        "ssl.ca.pem": "/etc/timecached/kafka/ssl.ca.pem",
                    },
                },
                "lease": "2s",
                "failure_timeout": "5s",
                "max_clock_skew": "1s",
                "reads": "confirmed",
            },
        )
        self.assertEqual(
            proto_fields(CONFIG, "ClusterConfig") - set(cluster),
            {
                "node",
                "advertise",
                "allow_unsafe",
                "forward_calls",
                "peer_principal",
                "peer_token_file",
                "peer_ca_file",
            },
        )
        cluster = yaml.safe_load(
            config_text(
                self.rendered(
                    "cluster.enabled=true",
                    "cluster.allowUnsafe=true",
                    "cluster.kafka.brokers[0]=kafka:9092",
                )
            )
        )["cluster"]
        self.assertEqual(
            cluster,
            {
                "name": "timecached",
                "kafka": {"brokers": ["kafka:9092"]},
                "allow_unsafe": True,
            },
        )

    def test_nodes_that_take_each_other_s_calls_are_told_how(self):
        config = yaml.safe_load(config_text(self.of_values("forwarding")))
        cluster = config["cluster"]
        self.assertEqual(
            {name: value for name, value in cluster.items() if name not in ("name", "kafka")},
            {
                "forward_calls": True,
                "peer_principal": "nodes",
                "peer_token_file": "/etc/timecached/peer/token",
                "peer_ca_file": "/etc/timecached/peer-ca/ca.crt",
            },
        )
        self.assertEqual(config["default_partitions"], 16)
        for defaults in self.of_values("cluster"), self.rendered():
            config = yaml.safe_load(config_text(defaults))
            self.assertNotIn("default_partitions", config)
            self.assertNotIn("forward_calls", config.get("cluster", {}))

    def test_nodes_that_take_each_other_s_calls_reach_each_other(self):
        objects = self.of_values("forwarding")
        (policy,) = of_kind(objects, "NetworkPolicy")
        spec = policy["spec"]
        nodes = {
            "ports": [{"port": "grpc"}],
            "from": [{"podSelector": {"matchLabels": server(objects)["spec"]["selector"]
                                      ["matchLabels"]}}],
        }
        self.assertIn(nodes, spec["ingress"])
        self.assertIn({"ports": nodes["ports"], "to": nodes["from"]}, spec["egress"])
        (policy,) = of_kind(self.of_values("cluster"), "NetworkPolicy")
        self.assertNotIn(nodes, policy["spec"]["ingress"])
        # To the names that they tell each other, by a certificate that is for them.
        settings = (
            "cluster.enabled=true", "replicaCount=2", "cluster.kafka.brokers[0]=k:1",
            "tls.enabled=true", "tls.certManager.enabled=true",
            "tls.certManager.issuerRef.name=a",
        )
        for forwards, more in ("true", ["client auth"]), ("false", []):
            objects = self.rendered(*settings, f"cluster.forwardCalls={forwards}")
            (certificate,) = of_kind(objects, "Certificate")
            spec = certificate["spec"]
            self.assertEqual(
                spec["usages"],
                ["digital signature", "key encipherment", "server auth", *more],
            )
            (advertise,) = [
                flag for flag in server_container(objects)["args"]
                if flag.startswith("--advertise=")
            ]
            self.assertIn(
                advertise.removeprefix("--advertise=").replace("$(POD_NAME)", "*")
                .removesuffix(":7171"),
                spec["dnsNames"],
            )

    def test_nodes_that_take_each_other_s_calls_are_updated_one_by_one(self):
        objects = self.of_values("forwarding")
        self.assertEqual(
            server(objects)["spec"]["updateStrategy"], {"type": "RollingUpdate"}
        )
        self.assertEqual(server(objects)["spec"]["minReadySeconds"], 2)
        (budget,) = of_kind(objects, "PodDisruptionBudget")
        self.assertEqual(budget["spec"]["maxUnavailable"], 1)
        self.assertNotIn("minAvailable", budget["spec"])

    def test_a_cluster_s_topics_are_made_before_it_starts(self):
        (topics,) = server_spec(self.of_values("cluster"))["initContainers"]
        self.assertEqual(
            topics["args"],
            [
                "cluster",
                "init",
                "--config=/etc/timecached/config/timecached.yaml",
                "--partitions=32",
                "--replication-factor=3",
            ],
        )
        self.assertEqual(
            {mount["name"] for mount in topics["volumeMounts"]}, {"config", "kafka"}
        )

    def test_a_cluster_s_nodes_are_on_machines_of_their_own(self):
        cluster = ["cluster.enabled=true", "replicaCount=2", "cluster.kafka.brokers[0]=k:1"]
        for settings, rule in [
            ((), "requiredDuringSchedulingIgnoredDuringExecution"),
            (
                ("cluster.antiAffinity=preferred",),
                "preferredDuringSchedulingIgnoredDuringExecution",
            ),
        ]:
            spec = server_spec(self.rendered(*cluster, *settings))
            self.assertEqual(list(spec["affinity"]["podAntiAffinity"]), [rule])
        spec = server_spec(self.rendered(*cluster, "affinity.nodeAffinity.a=b"))
        self.assertEqual(spec["affinity"], {"nodeAffinity": {"a": "b"}})
        self.assertNotIn("affinity", server_spec(self.rendered()))

    def test_a_recovery_delays_the_startup_probe_s_end(self):
        for settings, tries in [
            ((), 30),
            (("journal.recoverySeconds=900",), 30),
            (("journal.enabled=true",), 630),
            (("journal.enabled=true", "journal.recoverySeconds=0"), 30),
            (
                (
                    "journal.enabled=true",
                    "journal.recoverySeconds=100",
                    "probes.startup.periodSeconds=3",
                    "probes.startup.failureThreshold=10",
                ),
                44,
            ),
        ]:
            with self.subTest(settings=settings):
                probe = server_container(self.rendered(*settings))["startupProbe"]
                self.assertEqual(probe["failureThreshold"], tries)

    def test_pods_with_an_identity_are_a_stateful_set_s(self):
        for settings, kind in [
            ((), "Deployment"),
            (("replicaCount=0",), "Deployment"),
            (("journal.enabled=true",), "StatefulSet"),
            (("replicaCount=2", "service.enabled=false"), "StatefulSet"),
            (("updateStrategy.type=OnDelete",), "StatefulSet"),
        ]:
            with self.subTest(settings=settings):
                self.assertEqual(server(self.rendered(*settings))["kind"], kind)

    def test_helm_s_test_asks_a_name_that_both_kinds_have(self):
        for objects in chart.render(), self.of_values("journal"), self.of_values("sharded"):
            (headless,) = [
                service["metadata"]["name"]
                for service in of_kind(objects, "Service")
                if service["spec"].get("clusterIP") == "None"
            ]
            (pod,) = of_kind(objects, "Pod")
            for container in containers(pod["spec"]):
                self.assertRegex(container["command"][-1], f"^{headless}:[0-9]+$")

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
            (self.of_values("journal"), "RollingUpdate"),
            (self.of_values("openshift"), "OnDelete"),
        ]:
            strategies = server(objects)["spec"]["updateStrategy"]
            self.assertEqual(strategies, {"type": strategy})

    def documented(self, command, part, *more):
        """What the settings of a command of the documents, with this part, render, with more
        settings."""
        document = (chart.DEPLOY.parent / "docs/OPERATIONS.md").read_text()
        commands = re.findall(rf"^ *\$ ({command} (?:.*\\\n)*.*)$", document, re.M)
        (command,) = (each for each in commands if part in each)
        words = shlex.split(command)
        self.assertEqual(words[2:4], ["timecached", "deploy/helm/timecached"])
        settings = [a for a, flag in zip(words[1:], words) if flag == "--set"]
        self.assertGreaterEqual(len(settings), 3)
        return self.rendered(*more, *settings)

    def test_the_documented_installation_renders_what_it_is_for(self):
        objects = self.documented("helm install", "image.registry")
        self.assertEqual(
            server_container(objects)["image"],
            "registry.example/team/timecached:0.1.0",
        )
        self.assertIn("tls.crt", config_text(objects))

    def test_the_documented_upgrade_adds_a_journal(self):
        objects = self.documented("helm upgrade", "journal.enabled")
        (claim,) = server(objects)["spec"]["volumeClaimTemplates"]
        self.assertEqual(claim["spec"]["resources"]["requests"], {"storage": "20Gi"})
        self.assertIn("journal:", config_text(objects))

    def test_the_documented_upgrade_has_nodes_take_each_other_s_calls(self):
        objects = self.documented(
            "helm upgrade",
            "cluster.forwardCalls",
            "cluster.enabled=true",
            "replicaCount=2",
            "cluster.kafka.brokers[0]=k:9092",
        )
        self.assertIn("peer_token_file:", config_text(objects))

    def test_the_documented_upgrade_adds_a_console(self):
        objects = self.documented("helm upgrade", "console.enabled")
        self.assertEqual(len([found for found in objects if is_console(found)]), 2)

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
        (budget,) = of_kind(objects, "PodDisruptionBudget")
        for found in server(objects), budget:
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
        self.assertNotIn("annotations", server(objects)["spec"]["template"]["metadata"])

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

    def test_the_console_is_made_when_it_is_asked_for(self):
        self.assertFalse(any(is_console(found) for found in self.rendered()))
        objects = [found for found in self.of_values("console") if is_console(found)]
        self.assertEqual([found["kind"] for found in objects], ["Service", "Deployment"])
        service, deployment = (found["spec"] for found in objects)
        pod = deployment["template"]
        self.assertEqual(service["selector"], deployment["selector"]["matchLabels"])
        self.assertLessEqual(service["selector"].items(), pod["metadata"]["labels"].items())
        # The server's NetworkPolicy lets it in.
        self.assertEqual(pod["metadata"]["labels"]["timecached.dev/client"], "true")
        (container,) = pod["spec"]["containers"]
        self.assertEqual(container["command"], ["timecachectl"])
        self.assertIn("--read-only", container["args"])
        self.assertEqual(service["ports"][0]["targetPort"], container["ports"][0]["name"])
        # The program takes the flags, and keeps the token out of the log.
        self.assertRegex(
            start_console(container["args"]),
            r"^The console of timecached:7171: https://console\.example:[0-9]+/$",
        )

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
