"""Nodes reach brokers by TLS and by each mechanism of SASL, with secrets from files that
nobody gets to see, and say what is wrong with them."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import brokers as module
import kafka_wire
from brokers import HOST, PATIENCE_SECONDS, Brokers, free_ports

SKIPPED = 77  # for ctest
BUILD = pathlib.Path(os.environ.get("TIMECACHED_BUILD", "build/release"))
TIMECACHED = BUILD / "server/timecached"
TIMECACHECTL = BUILD / "client/cli/timecachectl"

USER = "timecached"
PASSWORD = "Tr0ub4dor-and-3"
LOGIN = "org.apache.kafka.common.security"


def make_certificates(directory):
    """ca.pem, and for the broker and the node NAME.pem and NAME.key, both in NAME.all."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca")
    (directory / "san").write_text(f"subjectAltName=IP:{HOST}")
    for name in "broker", "node":
        openssl("req", *new, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj",
                f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-CAcreateserial", "-extfile", "san", "-out", f"{name}.pem")
        (directory / f"{name}.all").write_text(
            (directory / f"{name}.key").read_text() + (directory / f"{name}.pem").read_text())


def broker_settings(directory):
    """Of the listeners SASL and MTLS."""
    settings = {}
    for listener in "sasl", "mtls":
        settings |= {f"listener.name.{listener}.{key}": value for key, value in {
            "ssl.keystore.type": "PEM", "ssl.keystore.location": directory / "broker.all",
            "ssl.truststore.type": "PEM", "ssl.truststore.location": directory / "ca.pem",
        }.items()}
    return settings | {
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.sasl.sasl.enabled.mechanisms":
            "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.sasl.plain.sasl.jaas.config":
            f'{LOGIN}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
        "listener.name.sasl.scram-sha-256.sasl.jaas.config":
            f"{LOGIN}.scram.ScramLoginModule required;",
        "listener.name.sasl.scram-sha-512.sasl.jaas.config":
            f"{LOGIN}.scram.ScramLoginModule required;",
        "listener.name.sasl.oauthbearer.sasl.jaas.config":
            f"{LOGIN}.oauthbearer.OAuthBearerLoginModule required;"}


class SecureBrokersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(
            cls.enterClassContext(tempfile.TemporaryDirectory(prefix="secure-")))
        make_certificates(cls.directory)
        cls.brokers = cls.enterClassContext(
            Brokers(1, cls.directory / "brokers", broker_settings(cls.directory),
                    listeners={"SASL": "SASL_SSL", "MTLS": "SSL"}))
        kafka_wire.set_scram_password(cls.brokers.brokers[1].address, USER, PASSWORD)
        (cls.directory / "password").write_text(PASSWORD + "\n")
        (cls.directory / "wrong").write_text("wr0ng-password\n")
        made = cls.run_program(
            TIMECACHED, "cluster", "init", "--cluster", "eu", "--kafka-brokers",
            cls.brokers.bootstrap, "--replication-factor", "1", "--partitions", "2",
            "--cluster-allow-unsafe")
        assert made.returncode == 0, made.stderr

    @staticmethod
    def run_program(*arguments):
        return subprocess.run(arguments, capture_output=True, text=True, check=False,
                              timeout=PATIENCE_SECONDS)

    def configure(self, name, listener, properties, files):
        """The file of a node of this name, and its address."""
        address = f"{HOST}:{min(free_ports(1))}"
        path = self.directory / f"{name}.yaml"
        path.write_text(json.dumps({  # JSON is YAML.
            "listeners": [{"address": address}],
            "cluster": {
                "name": "eu", "node": name, "advertise": address, "allow_unsafe": True,
                "kafka": {"brokers": self.brokers.bootstrap_on(listener).split(","),
                          "properties": {"ssl.ca.location": str(self.directory / "ca.pem"),
                                         **properties},
                          "property_files": {name: str(self.directory / file)
                                             for name, file in files.items()}}},
            "namespaces": [{"name": "default",
                            "options": {"ttl": "5m", "durability": "replicated"}}]}))
        return path, address

    def check_node(self, *how):
        """One that reaches the brokers so becomes the owner, and serves."""
        config, address = self.configure("node", *how)

        def control(*arguments):
            return self.run_program(TIMECACHECTL, "--address", address, *arguments)

        checked = self.run_program(TIMECACHED, "--config", config, "--check-config")
        self.assertEqual(checked.returncode, 0, checked.stderr)
        log = self.directory / "log"
        with open(log, "wb") as output, subprocess.Popen(
                [TIMECACHED, "--config", config], stdout=output, stderr=output) as node:
            try:
                until = time.monotonic() + PATIENCE_SECONDS
                while (put := control("put", "key", str(how))).returncode != 0:
                    if time.monotonic() > until or node.poll() is not None:
                        self.fail(put.stderr + log.read_text())
                    time.sleep(0.1)
                got = control("get", "key")
                self.assertIn(str(how), got.stdout)
                seen = checked.stdout + checked.stderr
                for what in ("--json", "status"), ("cluster", "status"), ("--json", "cluster", "status"):
                    shown = control(*what)
                    self.assertEqual(shown.returncode, 0, shown.stderr)
                    seen += shown.stdout
            finally:
                node.terminate()
        self.assertEqual(node.returncode, 0, log.read_text())
        self.assertNotIn(PASSWORD, seen + log.read_text())
        # librdkafka's warnings of properties.
        self.assertNotIn("CONFWARN", log.read_text())

    def sasl(self, mechanism, password="password", **properties):
        return ("SASL", {"security.protocol": "sasl_ssl", "sasl.mechanism": mechanism,
                         "sasl.username": USER, **properties}, {"sasl.password": password})

    def test_sasl_with_a_password(self):
        for mechanism in "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512":
            with self.subTest(mechanism):
                self.check_node(*self.sasl(mechanism))

    def test_oauthbearer(self):
        self.check_node("SASL", {
            "security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER",
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": f"principal={USER}"}, {})

    def test_a_certificate(self):
        self.check_node("MTLS", {
            "security.protocol": "ssl", "ssl.certificate.location":
            str(self.directory / "node.pem")}, {"ssl.key.pem": "node.key"})

    def test_what_brokers_refuse_is_said(self):
        """After 30 s, in which they might accept it."""
        sasl, mtls = (self.brokers.bootstrap_on(name) for name in ("SASL", "MTLS"))
        cases = {
            "plain": (self.sasl("PLAIN", "wrong"),
                      f"sasl_ssl://{sasl}.*Invalid username or password.* sasl.password"),
            "scram": (self.sasl("SCRAM-SHA-512", "wrong"),
                      f"sasl_ssl://{sasl}.*invalid credentials.* sasl.password"),
            "plaintext": (("SASL", {"security.protocol": "plaintext"}, {}),
                          f"{sasl}.*security.protocol"),
            "authority": (("MTLS", {"security.protocol": "ssl", "ssl.ca.location":
                                    str(self.directory / "node.pem")}, {}),
                          f"ssl://{mtls}.*(ssl.ca.location is correctly|"
                          "certificate verify failed).* ssl"),
            "certificate": (("MTLS", {"security.protocol": "ssl"}, {}),
                            f"ssl://{mtls}.*certificate.* ssl")}
        nodes = {name: subprocess.Popen(
            [TIMECACHED, "--config", self.configure(name, *how)[0]], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE) for name, (how, _) in cases.items()}
        for name, node in nodes.items():
            _, log = node.communicate(timeout=PATIENCE_SECONDS)
            with self.subTest(name):
                self.assertEqual(node.returncode, 1)
                self.assertRegex(log.splitlines()[-1], "^timecached: eu.journal: .*" +
                                 cases[name][1])
                self.assertNotIn("wr0ng", log)

    def test_what_no_broker_is_asked_for_is_refused_by_name(self):
        def refusal(*how):
            for more in (), ("--check-config",):
                node = self.run_program(
                    TIMECACHED, "--config", self.configure("node", *how)[0], *more)
                self.assertEqual(node.returncode, 1, node.stderr)
            return node.stderr

        self.assertRegex(refusal(*self.sasl("PLAIN", "missing")),
                         r"cluster\.kafka\.property_files\[sasl\.password\]: .*/missing: cannot")
        self.assertRegex(refusal("SASL", {"sasl.password": PASSWORD}, {}),
                         r"cluster\.kafka\.properties\[sasl\.password\]: is a secret")
        self.assertIn('"nonsense"', refusal("SASL", {"nonsense": "1"}, {}))
        self.assertIn('"security.protocol"', refusal("SASL", {"security.protocol": "sals"}, {}))


if __name__ == "__main__":
    if REASON := module.unavailable():
        print(f"secure_brokers: {REASON}")
        sys.exit(1 if os.environ.get("TIMECACHED_ALL_CLIENTS") else SKIPPED)
    unittest.main()
