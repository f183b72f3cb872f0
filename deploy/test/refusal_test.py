"""Values that the chart must not take."""

import json
import unittest

import chart
from protos import CONFIG, NAMESPACES, proto_fields


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
            "journal.enabled=true",
            "journal.existingClaim=a",
        )
        self.refused("need journal.enabled=true", "journal.existingClaim=a")
        self.refused("need journal.enabled=true", "journal.maxClockLag=1m")
        self.refused("need journal.enabled=true", "journal.maxClockLead=400d")
        self.refused("need journal.enabled=true", "journal.reserveBytes=1GiB")
        self.refused("need service.type=NodePort", "service.nodePort=30000")
        self.refused("need service.type=LoadBalancer", "service.loadBalancerIP=192.0.2.1")

    def test_a_console_without_its_secrets(self):
        names = ("console.tokenSecretName=a", "console.tlsSecretName=b", "console.hosts[0]=c")
        for left_out in names:
            settings = (setting for setting in names if setting != left_out)
            self.refused("console.enabled needs", "console.enabled=true", *settings)

    def test_clusters_that_cannot_be(self):
        enabled = "cluster.enabled=true"
        self.refused("needs replicaCount of 2", enabled, "cluster.kafka.brokers[0]=k:9092")
        self.refused("needs cluster.kafka.brokers", enabled, "replicaCount=2")
        self.refused(
            "disable one of them",
            enabled,
            "replicaCount=2",
            "cluster.kafka.brokers[0]=k:9092",
            "journal.enabled=true",
        )
        self.refused(
            "payments has durability replicated, which needs cluster.enabled=true",
            "config.namespaces[0].name=payments",
            "config.namespaces[0].options.durability=replicated",
        )
        self.refused("antiAffinity", "cluster.antiAffinity=some")
        self.refused("brokers", "cluster.kafka.brokers[0]=k")
        self.refused("key is required", "cluster.kafka.secretProperties.a.name=b")
        self.refused("default_partitions", "config.default_partitions=65")

    def test_nodes_that_cannot_call_each_other(self):
        forwards = (
            "cluster.enabled=true",
            "replicaCount=2",
            "cluster.kafka.brokers[0]=k:9092",
            "cluster.forwardCalls=true",
        )
        self.refused("needs cluster.enabled=true", "cluster.forwardCalls=true")
        self.refused("needs cluster.forwardCalls=true", "cluster.peer.principal=a")
        self.refused("needs cluster.forwardCalls=true", "cluster.peer.tokenSecretName=a")
        self.refused("needs tls.enabled=true", *forwards, "cluster.peer.caSecretName=a")
        self.refused("needs cluster.peer.principal", *forwards, "access.secretName=a")
        self.refused(
            "needs cluster.peer.tokenSecretName, or tls.clientCaSecretName",
            *forwards,
            "access.secretName=a",
            "cluster.peer.principal=a",
        )
        self.refused("Additional property", "cluster.peer.token=a")

    def test_durable_namespaces_without_a_journal(self):
        for durability in "async", "sync":
            self.refused(
                f"payments has durability {durability}, which needs journal.enabled=true",
                "config.namespaces[0].name=cache",
                "config.namespaces[0].options.durability=memory",
                "config.namespaces[1].name=payments",
                f"config.namespaces[1].options.durability={durability}",
            )

    def test_the_schema_knows_the_configuration_s_fields(self):
        schema = json.loads((chart.CHART / "values.schema.json").read_text())
        config = schema["properties"]["config"]["properties"]
        namespace = config["namespaces"]["items"]["properties"]
        for known, file, message in [
            (config["limits"], CONFIG, "ServerLimits"),
            (config["log"], CONFIG, "LogConfig"),
            (config["debug"], CONFIG, "DebugConfig"),
            (namespace["options"], NAMESPACES, "NamespaceOptions"),
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
        self.refused("namespaces.0.name", "config.namespaces[0].name=Sessions")
        self.refused("namespaces.0.name", "config.namespaces[0].name=my_sessions")
        self.refused(
            "dead_letter_namespace",
            "config.namespaces[0].name=a",
            "config.namespaces[0].options.dead_letter_namespace=B",
        )
        self.refused(
            "limit_policy",
            "config.namespaces[0].name=a",
            "config.namespaces[0].options.limit_policy=evict",
        )
        self.refused("name is required", "config.namespaces[0].options.ttl=1s")
        self.refused("accessModes", "journal.accessModes[0]=ReadWriteMany")
        self.refused("journal.size", "journal.size=large")
        self.refused("journal.maxClockLag", "journal.maxClockLag=1 minute")
        self.refused("journal.maxClockLead", "journal.maxClockLead=1 year")
        self.refused("recoverySeconds", "journal.recoverySeconds=10m")
        self.refused(unknown, "journal.directory=/data")
        self.refused(unknown, "config.journal.directory=/data")
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
