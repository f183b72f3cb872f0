"""What helm says after an installation."""

import pathlib
import re
import shlex
import shutil
import tempfile
import unittest

import yaml

import chart
from objects import config_text, of_kind, server, server_container
from programs import check_health


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

    def test_they_say_where_the_journal_is(self):
        self.assertNotIn("journal", self.notes())
        notes = self.notes("journal.enabled=true")
        objects = chart.render("--set", "journal.enabled=true")
        (claim,) = server(objects)["spec"]["volumeClaimTemplates"]
        pod = f"{server(objects)['metadata']['name']}-0"
        self.assertIn(f"the claim\n{claim['metadata']['name']}-{pod}:", notes)
        self.assertIn("All others are in memory", notes)
        notes = self.notes(
            "journal.enabled=true", "journal.existingClaim=mine", "existingConfigMap=other"
        )
        self.assertIn("the claim\nmine:", notes)
        directory = yaml.safe_load(config_text(objects))["journal"]["directory"]
        self.assertIn(f"ConfigMap other must have journal.directory: {directory}.", notes)

    def test_they_say_how_a_cluster_is_updated(self):
        notes = self.notes(
            "cluster.enabled=true", "cluster.kafka.brokers[0]=k:9092", "replicaCount=2"
        )
        self.assertIn("timecached.journal and timecached.control", notes)
        self.assertIn("Namespaces of durability replicated are in Kafka", notes)
        self.assertIn("set cluster.createTopics.enabled=true", notes)
        self.assertIn("delete pod timecached-1\n", notes)
        self.assertIn("Delete the standbys first", notes)

    def test_they_say_how_nodes_that_take_each_other_s_calls_are_updated(self):
        forwards = (
            "cluster.enabled=true",
            "cluster.forwardCalls=true",
            "cluster.kafka.brokers[0]=k:9092",
            "replicaCount=2",
        )
        notes = self.notes(*forwards)
        self.assertIn("any of them takes calls", notes)
        self.assertIn("rolled out pod by pod", notes)
        self.assertNotIn("Delete the standbys first", notes)
        self.assertIn("delete pod timecached-1\n", notes)
        notes = self.notes(*forwards, "updateStrategy.type=OnDelete")
        self.assertIn("Delete the standbys first", notes)

    def test_they_say_where_the_image_comes_from(self):
        notes = self.notes()
        self.assertIn("timecached:0.1.0 (pullPolicy IfNotPresent)", notes)
        self.assertIn("No public registry has it", notes)
        notes = self.notes("image.registry=r.example", "image.pullPolicy=Always")
        self.assertIn("r.example/timecached:0.1.0 (pullPolicy Always)", notes)
        self.assertNotIn("No public registry", notes)

    def test_commands_name_what_the_chart_makes(self):
        self.check_commands(
            self.notes(),
            chart.render(),
            lambda name: (
                f"deployment/{name}",
                f"$(kubectl -n {chart.NAMESPACE} get pod -o name -l "
                "app.kubernetes.io/name=timecached,app.kubernetes.io/instance=timecached)",
            ),
        )
        self.check_commands(
            self.notes("journal.enabled=true"),
            chart.render("--set", "journal.enabled=true"),
            lambda name: (f"{name}-0", f"{name}-0"),
        )

    def check_commands(self, notes, objects, pods):
        exec_pod, debug_pod = pods(server(objects)["metadata"]["name"])
        commands = re.findall(
            r"^  ((?:kubectl|helm) (?:.*\\\n)*.*)$", notes, re.MULTILINE
        )
        self.assertEqual(len(commands), 4, notes)
        for command in commands:
            words = shlex.split(command)
            self.assertEqual(words[1:3], ["-n", chart.NAMESPACE], command)
            if words[3] == "exec":
                self.assertEqual(words[4], exec_pod)
            if words[3] == "debug":
                self.assertEqual(words[4], debug_pod)
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
        self.assertEqual(address.rsplit(":", 1)[1], config["health_address"].rsplit(":", 1)[1])
        health = check_health(program, arguments)
        self.assertEqual(health.stdout, "SERVING\n", health.stderr)
