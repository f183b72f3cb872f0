"""The same attacks through the proxy that is shipped (deploy/proxy/haproxy.cfg)."""

import os
import shutil
import subprocess
import tempfile
import time

from abuse import attacks_calls, attacks_connections, attacks_frames, attacks_headers
from abuse import certificates, messages
from abuse.attack import World, attack
from abuse.honest import Channel
from abuse.processes import (
    Failed, Honest, Server, end_with_parent, expect, free_port, wait_until)
from abuse.wire import Closed, Wire

PROXY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/proxy")
HAPROXY = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")

# What hurts a server without a proxy, and some more.
THROUGH = (
    attacks_frames.rapid_reset, attacks_frames.rapid_reset_with_request,
    attacks_frames.too_many_streams, attacks_frames.continuation_flood,
    attacks_frames.empty_continuation_flood, attacks_frames.settings_flood,
    attacks_frames.ping_flood, attacks_frames.invalid_frames,
    attacks_headers.limits_not_acknowledged, attacks_headers.hpack_bomb,
    attacks_headers.hpack_long_string, attacks_headers.hpack_long_integer,
    attacks_headers.hpack_invalid, attacks_headers.abort_by_metadata,
    attacks_headers.many_headers, attacks_calls.gzip_bomb,
    attacks_connections.headers_never_ended,
)


class ProxyWorld(World):
    """Connections go to the proxy, with a client's certificate."""

    def __init__(self, world, server, address, tls):
        super().__init__(world.binary, world.full, server)
        self.address, self.tls = address, tls
        # Limits are of an address: each attack comes from one of its own.
        self.source = None

    def connect(self, **options):
        return Wire(self.address, tls=self.tls, **{"source": self.source, **options})


class Proxy:
    """HAProxy with the shipped configuration, and a server behind it."""

    def __init__(self, world):
        expect(HAPROXY, "haproxy is missing")
        # All that it lets through comes from one address.
        self.server = Server(
            world.binary, "limits: {max_new_connections_per_second: 10000}\n")
        self.directory = tempfile.TemporaryDirectory(prefix="timecached-abuse-")
        self.process = None
        try:
            self.tls = certificates.make(self.directory.name)
            self.address = f"127.0.0.1:{free_port()}"
            with open(os.path.join(self.directory.name, "log"), "wb") as log:
                self.process = subprocess.Popen(
                    [HAPROXY, "-db", "-f", os.path.join(PROXY, "haproxy.cfg")],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    env={**os.environ, "TIMECACHED_ADDRESS": self.server.address,
                         "TIMECACHED_PROXY_ADDRESS": self.address,
                         "TIMECACHED_PROXY_PEM": self.tls["server_pem"],
                         "TIMECACHED_PROXY_CA": self.tls["ca"]},
                    preexec_fn=end_with_parent)
            wait_until(self._listens, "the proxy listens")
            self.world = ProxyWorld(world, self.server, self.address, self.tls)
        except BaseException:
            self.stop()
            raise

    def _listens(self):
        with open(os.path.join(self.directory.name, "log"), encoding="utf-8") as log:
            expect(self.process.poll() is None, f"the proxy ended: {log.read()[-800:]}")
        try:
            Wire(self.address, tls=self.tls).close()
            return True
        except OSError:
            return False

    def resident_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            status = dict(line.split(":", 1) for line in file)
        return int(status["VmRSS"].split()[0]) // 1024

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.directory.cleanup()
        self.server.stop()


@attack(alone=True)
def proxy_passes(world):
    """Unary calls, a pipeline and watches work through it; strangers do not."""
    proxy = Proxy(world)
    honest = None
    try:
        honest = Honest(proxy.address, proxy.tls)
        honest.check()
        time.sleep(world.scale(1, 30))
        checked = honest.check()
        expect(not checked["failures"], f"{checked['failures'][:2]}")
        channel = Channel(proxy.address, proxy.tls)
        stream = channel.start("Pipeline")
        answers = channel.messages(stream)
        for i in range(100):
            channel.send(stream, messages.execute([(b"pipe%d" % i, b"v")]))
            expect(next(answers), "a pipeline's answer")
        channel.close()
        with_key = dict(proxy.tls)
        try:
            stranger = Wire(proxy.address, tls={"ca": with_key["ca"]})
            said = stranger.drain(patience=5)
            expect("open" not in said, "the proxy takes a client without a certificate")
        except (OSError, Closed):
            pass
        return f"honest through the proxy: {checked['calls']} puts+gets, p50 " \
               f"{checked['p50_ms']:.1f} ms, {checked['events']} events, 100 batches of a " \
               f"pipeline; without a certificate: refused"
    finally:
        if honest is not None:
            honest.stop()
        proxy.stop()


@attack(alone=True)
def proxy_attacked(world):
    """What hurts the server without it."""
    proxy = Proxy(world)
    honest, failed = None, 0
    try:
        honest = Honest(proxy.address, proxy.tls)
        honest.check()
        before = proxy.server.usage()
        for number, one in enumerate(THROUGH):
            proxy.world.source = f"127.0.1.{number + 1}"
            try:
                said = one(proxy.world)
            except (Failed, Closed, TimeoutError, OSError) as error:
                # The proxy closes what is wrong where the server would answer.
                said = f"{type(error).__name__} {error}"
            proxy.server.expect_alive()
            expect(proxy.process.poll() is None, f"the proxy died of {one.__name__}")
            print(f"  through the proxy: {one.__name__}: {said[:150]}. server: RSS "
                  f"{proxy.server.usage()['rss_mib']} MiB", flush=True)
        # Its connection to the server is its own: no attack has ended it.
        checked = honest.check()
        failed = len(checked["failures"])
        expect(failed == 0, f"the honest client failed: {checked['failures'][:3]}")
        after = proxy.server.usage()
        expect(after["peak_mib"] < before["rss_mib"] + 256,
               f"the server behind the proxy grew to {after['peak_mib']} MiB")
        return f"{len(THROUGH)} attacks through the proxy: server RSS {before['rss_mib']} -> " \
               f"{after['rss_mib']} MiB (peak {after['peak_mib']}), CPU " \
               f"{after['cpu_s'] - before['cpu_s']:.1f} s; proxy {proxy.resident_mib()} MiB; " \
               f"honest: {checked['calls']} puts+gets, {failed} failed"
    finally:
        if honest is not None:
            honest.stop()
        proxy.stop()
