"""Which requests the console answers: of whom, from where, how long."""

import http.client
import resource
import time
import unittest

from client.console.http_console import CACHE, SAFE_HEADERS, HttpConsole
from console.world import PATIENCE_SECONDS, virtual_server



class RequestsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(virtual_server())
        cls.console = cls.enterClassContext(
            HttpConsole(cls.server.address, "--host", "Console.Example"))

    def get(self, path="/", **headers):
        return self.console.request(
            "GET", path, headers={name.replace("_", "-"): each for name, each in headers.items()})

    def about(self, headers):
        return self.console.request("GET", "/api/console", headers=headers).status

    def test_page_has_types_and_a_strict_policy(self):
        self.assertEqual(set(SAFE_HEADERS) - set(self.get().headers), set())
        for path, kind in (("/", "text/html"), ("/index.html", "text/html"),
                           ("/app.js", "text/javascript"), ("/style.css", "text/css")):
            answer = self.get(path)
            self.assertEqual(answer.status, 200, path)
            self.assertEqual(answer.headers.get_content_type(), kind)
        self.assertNotIn(b"<script>", self.get().body)
        head = self.console.request("HEAD", "/")
        self.assertEqual((head.status, head.body), (200, b""))

    def test_there_is_no_other_file(self):
        for path in ("/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd",
                     "/views/../app.js", "/..%2fapp.js", "/app.js%00.html", "/views", "/nothing",
                     "/" + "a" * 4000):
            self.assertEqual(self.get(path).status, 404, path)

    def test_api_takes_the_token(self):
        token = self.console.token
        self.assertEqual(self.about(self.console.auth), 200)
        forged = token[:-1] + ("A" if token[-1] != "A" else "B")
        for headers in ({}, {"Authorization": ""}, {"Authorization": "Bearer "},
                        {"Authorization": f"Bearer {forged}"},
                        {"Authorization": f"Bearer {token}A"},
                        {"Authorization": f"Basic {token}"}, {"Authorization": token},
                        {"Cookie": f"token={token}"}):
            self.assertEqual(self.about(headers), 401, headers)
        self.assertEqual(self.get(f"/api/console?token={token}").status, 401)
        self.assertEqual(self.get("/api/nothing").status, 401)
        self.assertEqual(self.console.request(
            "POST", f"/api/rpc/{CACHE}/Put", b"{}").status, 401)

    def test_host_must_be_an_allowed_name(self):
        port = self.console.port
        for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}",
                     "console.example.evil", "", f"[::2]:{port}", f"127.0.0.2:{port}"):
            self.assertEqual(self.get(Host=host).status, 421, host)
        for host in (f"localhost:{port}", f"[::1]:{port}", "LOCALHOST", "console.example",
                     f"console.example:{port}"):
            self.assertEqual(self.get(Host=host).status, 200, host)
        self.assertEqual(self.console.raw(b"GET / HTTP/1.1\r\n\r\n"), 421)
        self.assertEqual(self.console.raw(
            b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"), 421)

    def test_other_origins_get_nothing(self):
        auth, port = self.console.auth, self.console.port
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"},
                        {"Origin": f"http://127.0.0.1:{port + 1}"}, {"Origin": "http://127.0.0.1"},
                        {"Origin": f"http://localhost:{port}"},
                        {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
                        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
                         "Sec-Fetch-Dest": "document"}):
            self.assertEqual(self.about(auth | headers), 403, headers)
        for headers in ({"Origin": f"http://127.0.0.1:{port}"}, {"Sec-Fetch-Site": "same-origin"},
                        {"Sec-Fetch-Site": "none"}):
            self.assertEqual(self.about(auth | headers), 200, headers)
        # A preflight.
        self.assertEqual(self.console.request(
            "OPTIONS", "/api/console", headers={"Origin": "http://evil.example"}).status, 403)

    def test_page_may_be_linked_but_not_framed_or_loaded_by_another_site(self):
        link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
        self.assertEqual(self.get(**link, Sec_Fetch_Dest="document").status, 200)
        self.assertEqual(self.get(**link, Sec_Fetch_Dest="iframe").status, 403)
        self.assertEqual(self.get("/app.js", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors",
                                  Sec_Fetch_Dest="script").status, 403)

    def test_bodies_are_bounded_json(self):
        method = f"{CACHE}/Put"

        def status(**headers):
            return self.console.rpc(method, b"{}", {
                name.replace("_", "-"): each for name, each in headers.items()}).status

        self.assertEqual(status(), 400)
        self.assertEqual(status(Content_Type="application/json; charset=utf-8"), 400)
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx",
                     "multipart/form-data; boundary=a"):
            self.assertEqual(status(Content_Type=kind), 415, kind)
        self.assertEqual(status(Content_Encoding="gzip"), 415)
        # Nothing of these is waited for, or kept.
        for length in (str(25 << 20), str(1 << 62)):
            self.assertEqual(status(Content_Length=length), 413, length)
        for length in ("-1", "1x", str(1 << 70)):
            self.assertEqual(status(Content_Length=length), 411, length)
        self.assertEqual(status(Content_Length=None), 411)
        self.assertEqual(status(Content_Length=None, Transfer_Encoding="chunked"), 411)
        self.assertEqual(self.console.request("GET", "/", b"{}").status, 400)
        self.assertEqual(self.console.request("POST", "/", b"{}").status, 405)
        self.assertEqual(self.console.request(
            "PUT", "/api/console", b"{}", self.console.auth).status, 405)

    def test_malformed_requests_are_refused(self):
        for request in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/3.0\r\n\r\n",
                        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n", b"PRI * HTTP/2.0\r\n\r\n",
                        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n",
                        b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"a" * 9000 + b"\r\n\r\n",
                        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: a\r\n" * 4000 + b"\r\n"):
            self.assertIn(self.console.raw(request), (0, 400, 414), request[:40])
        self.assertEqual(self.get().status, 200)

    def test_connection_is_kept_for_the_next_request(self):
        request = b"GET /index.html HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with self.console.connect() as connection:
            for _ in range(20):
                connection.sendall(request)
                answer = b""
                while not answer.endswith(b"</html>\n"):
                    answer += connection.recv(1 << 16)
                self.assertTrue(answer.startswith(b"HTTP/1.1 200"))

    def test_refusal_ends_the_connection_whose_body_it_leaves(self):
        hidden = b"GET /api/console HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with self.console.connect() as connection:
            connection.sendall(b"POST /api/rpc/a/b HTTP/1.1\r\nHost: localhost\r\n"
                               b"Content-Length: %d\r\n\r\n" % len(hidden) + hidden)
            answer = b""
            while part := connection.recv(1 << 16):
                answer += part
        self.assertEqual(answer.count(b"HTTP/1.1 "), 1)
        self.assertIn(b"401", answer)

    def test_thousand_connections_leave_room(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for beginning in (b"", b"GET / HTTP/1.1\r\nHost: loc"):
            held = []
            try:
                for _ in range(1000):
                    held.append(self.console.connect())
                    try:
                        held[-1].sendall(beginning)
                    except ConnectionError:
                        pass
                # One more may be beyond the limit until some of these have ended.
                self.assertEqual(self.get_patiently(), 200)
            finally:
                for connection in held:
                    connection.close()

    def get_patiently(self):
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self.get().status
            except (ConnectionError, http.client.HTTPException):
                self.assertLess(time.monotonic(), until)
                time.sleep(0.01)


if __name__ == "__main__":
    unittest.main()
