"""The example of Kafka's topics is what `timecached cluster init` makes."""

import re
import unittest

import yaml

import chart

TOPICS_CC = chart.DEPLOY.parent / "server/log/kafka/kafka_topics.cc"


def settings_of(function):
    """The names and values of a replicated topic."""
    body = re.search(rf"^Settings {function}\(.*?^}}", TOPICS_CC.read_text(), re.M | re.S)[0]
    pairs = re.findall(r'\{?"([a-z.]+)",\s*(?:[^"]*? \? )?"([^"]*)"', body)
    return {name: yaml.safe_load(value) for name, value in pairs}


class KafkaTest(unittest.TestCase):
    objects = list(yaml.safe_load_all((chart.DEPLOY / "kafka/strimzi.yaml").read_text()))

    def of_kind(self, kind):
        return {
            found["metadata"]["name"]: found["spec"]
            for found in self.objects
            if found["kind"] == kind
        }

    def test_topics_are_as_the_server_makes_them(self):
        journal = settings_of("JournalSettings")
        self.assertEqual(len(journal), 7)
        control = journal | settings_of("ControlSettings") | {"retention.ms": 3600000}
        self.assertEqual(len(control), 9)
        topics = self.of_kind("KafkaTopic")
        self.assertEqual(topics["eu.journal"]["config"], journal)
        self.assertEqual(topics["eu.control"]["config"], control)
        for topic in topics.values():
            self.assertEqual(topic["replicas"], 3)
        self.assertEqual(topics["eu.control"]["partitions"], 1)

    def test_the_chart_s_values_are_for_this_kafka(self):
        cluster = yaml.safe_load((chart.VALUES / "cluster.yaml").read_text())["cluster"]
        (kafka,) = self.of_kind("Kafka").values()
        (listener,) = kafka["kafka"]["listeners"]
        self.assertEqual(
            cluster["kafka"]["brokers"],
            [f"kafka-kafka-bootstrap.kafka.svc:{listener['port']}"],
        )
        secret = cluster["kafka"]["secretProperties"]["sasl.password"]["name"]
        ((user, spec),) = self.of_kind("KafkaUser").items()
        self.assertEqual(secret, user)
        properties = cluster["kafka"]["properties"]
        self.assertEqual(properties["sasl.username"], user)
        self.assertEqual(
            properties["sasl.mechanism"].lower(), spec["authentication"]["type"]
        )
        (rule,) = spec["authorization"]["acls"]
        for topic in self.of_kind("KafkaTopic"):
            self.assertTrue(topic.startswith(rule["resource"]["name"]))
            self.assertTrue(topic.startswith(cluster["name"] + "."))
