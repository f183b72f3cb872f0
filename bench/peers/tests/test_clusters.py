"""That a load of Redis Cluster reaches each master with keys of its own."""

import binascii
import types
import unittest

from peers import clusters, loads


class RedisClusterTest(unittest.TestCase):
    def setUp(self):
        programs = types.SimpleNamespace(peer_client=lambda name: name)
        self.cluster = clusters.RedisCluster(types.SimpleNamespace(programs=programs))
        self.cluster._nodes = [types.SimpleNamespace(port=port) for port in range(1, 7)]

    def flags(self, name, load, *masters):
        command = [str(part) for part in self.cluster.load_command(load, None, *masters)]
        return [command[i + 1] for i, flag in enumerate(command) if flag == name]

    def test_connections_are_to_the_masters_with_keys_of_their_slots(self):
        load = loads.Load(operations=1, wait_replicas=1)
        self.assertEqual(self.flags("--port", load), ["1", "2", "3"])
        self.assertEqual(self.flags("--wait-replicas", load), ["1"])
        # As redis-cli gives them.
        bounds = (0, 5461, 10923, 16384)
        for i, prefix in enumerate(self.flags("--key-prefix", load)):
            tag = prefix[prefix.index("{") + 1:prefix.index("}")]
            slot = binascii.crc_hqx(tag.encode(), 0) % 16384
            with self.subTest(prefix=prefix):
                self.assertTrue(bounds[i] <= slot < bounds[i + 1])
                self.assertEqual(len(prefix), len("key:"))

    def test_one_master_can_be_loaded_alone(self):
        load = loads.Load(operations=1)
        self.assertEqual(self.flags("--port", load, [1]), ["2"])
        self.assertEqual(self.flags("--key-prefix", load, [1]),
                         self.flags("--key-prefix", load)[1:2])
        self.assertEqual(self.flags("--wait-replicas", load), [])


if __name__ == "__main__":
    unittest.main()
