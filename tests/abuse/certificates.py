"""A CA, a server's certificate and a client's, for one run."""

import os
import subprocess
import time


def _openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def make_short(directory, tls, seconds):
    """A certificate of the client that ends in so many seconds: {"ca", "cert", "key"}."""
    def path(name):
        return os.path.join(directory, name)

    # `openssl ca` alone signs for less than a day.
    with open(path("index"), "w", encoding="ascii"), \
            open(path("ca.cnf"), "w", encoding="ascii") as config:
        config.write(f"[ca]\ndefault_ca=short\n[short]\ndatabase={path('index')}\n"
                     f"new_certs_dir={directory}\nrand_serial=yes\ndefault_md=sha256\n"
                     "policy=any\nunique_subject=no\nx509_extensions=san\n"
                     "[any]\ncommonName=supplied\n[san]\nsubjectAltName=DNS:client\n")
    end = time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + seconds))
    _openssl("ca", "-batch", "-config", path("ca.cnf"), "-cert", tls["ca"], "-keyfile",
             path("ca.key"), "-in", path("client.csr"), "-out", path("short.pem"),
             "-enddate", end)
    return {"ca": tls["ca"], "cert": path("short.pem"), "key": tls["key"]}


def make(directory):
    """{"ca", "server_cert", "server_key", "server_pem", "cert", "key"}: files."""
    def path(name):
        return os.path.join(directory, name)

    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    _openssl("req", "-x509", *new_key, "-keyout", path("ca.key"), "-out", path("ca.pem"),
            "-days", "2", "-subj", "/CN=abuse CA")
    for name, san in (("server", "DNS:localhost,IP:127.0.0.1"), ("client", "DNS:client")):
        _openssl("req", *new_key, "-keyout", path(name + ".key"), "-out", path(name + ".csr"),
                "-subj", f"/CN={name}")
        with open(path(name + ".ext"), "w", encoding="ascii") as file:
            file.write(f"subjectAltName={san}\n")
        _openssl("x509", "-req", "-in", path(name + ".csr"), "-CA", path("ca.pem"), "-CAkey",
                path("ca.key"), "-CAcreateserial", "-days", "2", "-out", path(name + ".pem"),
                "-extfile", path(name + ".ext"))
    with open(path("both.pem"), "wb") as both:
        for name in ("server.pem", "server.key"):
            with open(path(name), "rb") as file:
                both.write(file.read())
    return {"ca": path("ca.pem"), "server_cert": path("server.pem"),
            "server_key": path("server.key"), "server_pem": path("both.pem"),
            "cert": path("client.pem"), "key": path("client.key")}
