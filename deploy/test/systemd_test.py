"""The systemd unit, and the configuration that it comes with."""

import re
import unittest

import yaml

import chart
from programs import check_config

SYSTEMD = chart.DEPLOY / "systemd"
UNITS = {"s": 1, "min": 60}
# Until the server says for the first time that its recovery makes progress.
MIN_START_SECONDS = 60
# In which a slow disk takes what waits for it.
FLUSH_SECONDS = 30


def seconds(text):
    return int(re.match("[0-9]+", text)[0]) * UNITS[text.lstrip("0123456789")]


class SystemdTest(unittest.TestCase):
    """What the unit and the configuration must agree on."""

    service = dict(
        re.findall(r"^(\w+)=(.*)$", (SYSTEMD / "timecached.service").read_text(), re.M)
    )
    text = (SYSTEMD / "timecached.yaml").read_text()
    with_journal = re.sub(r"^#(journal:|  )", r"\1", text, flags=re.M)

    def test_the_journal_is_off_until_its_lines_are_taken_in(self):
        config = yaml.safe_load(self.text)
        self.assertNotIn("journal", config)
        self.assertEqual(
            yaml.safe_load(self.with_journal).keys() - config.keys(), {"journal"}
        )

    def test_the_server_takes_a_durable_namespace_with_the_journal_alone(self):
        durable = {"name": "payments", "options": {"durability": "sync"}}
        for text, code in (self.with_journal, 0), (self.text, 1):
            config = yaml.safe_load(text)
            config["namespaces"].append(durable)
            result = check_config(yaml.safe_dump(config))
            self.assertEqual(result.returncode, code, result.stderr)

    def test_the_journal_is_in_the_unit_s_state_directory(self):
        directory = yaml.safe_load(self.with_journal)["journal"]["directory"]
        state = f"/var/lib/{self.service['StateDirectory']}"
        self.assertEqual(directory, f"{state}/journal")
        self.assertEqual(self.service["StateDirectoryMode"], "0700")
        # It is owned by whatever user the unit gets, and else nothing can be written.
        self.assertEqual(self.service["DynamicUser"], "yes")
        self.assertEqual(self.service["ProtectSystem"], "strict")

    def test_the_server_takes_a_cluster_s_configuration(self):
        text = (SYSTEMD / "timecached-cluster.yaml").read_text()
        unit = (SYSTEMD / "timecached.service").read_text()
        credentials = "/run/credentials/timecached.service/"
        for name, file in {
            "tls.crt": "tls/tls.crt",
            "tls.key": "tls/tls.key",
            "kafka-password": "kafka/sasl.password",
            "kafka-ca.crt": "kafka/ssl.ca.pem",
        }.items():
            self.assertIn(credentials + name, text)
            self.assertIn(f"LoadCredential={name}:", unit)
            text = text.replace(credentials + name, f"/etc/timecached/{file}")
        result = check_config(text)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_start_and_a_drain_have_their_time(self):
        # Whoever notifies asks for more time: see ServiceManager::Starting.
        self.assertEqual(self.service["Type"], "notify")
        self.assertGreaterEqual(
            seconds(self.service["TimeoutStartSec"]), MIN_START_SECONDS
        )
        grace = seconds(yaml.safe_load(self.text)["grace_period"])
        self.assertGreaterEqual(
            seconds(self.service["TimeoutStopSec"]), grace + FLUSH_SECONDS
        )
