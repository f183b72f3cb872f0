"""A CA, a server's certificate and a client's, for one run."""

import os
import subprocess


def make(directory):
    """{"ca", "server_cert", "server_key", "server_pem", "cert", "key"}: files."""
    def path(name):
        return os.path.join(directory, name)

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)

    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *new_key, "-keyout", path("ca.key"), "-out", path("ca.pem"),
            "-days", "2", "-subj", "/CN=abuse CA")
    for name, san in (("server", "DNS:localhost,IP:127.0.0.1"), ("client", "DNS:client")):
        openssl("req", *new_key, "-keyout", path(name + ".key"), "-out", path(name + ".csr"),
                "-subj", f"/CN={name}")
        with open(path(name + ".ext"), "w", encoding="ascii") as file:
            file.write(f"subjectAltName={san}\n")
        openssl("x509", "-req", "-in", path(name + ".csr"), "-CA", path("ca.pem"), "-CAkey",
                path("ca.key"), "-CAcreateserial", "-days", "2", "-out", path(name + ".pem"),
                "-extfile", path(name + ".ext"))
    with open(path("both.pem"), "wb") as both:
        for name in ("server.pem", "server.key"):
            with open(path(name), "rb") as file:
                both.write(file.read())
    return {"ca": path("ca.pem"), "server_cert": path("server.pem"),
            "server_key": path("server.key"), "server_pem": path("both.pem"),
            "cert": path("client.pem"), "key": path("client.key")}
