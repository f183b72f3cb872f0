package dev.timecached.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.timecached.v1.ErrorReason;
import io.grpc.Status.Code;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@NeedsServer
@Timeout(180)
final class SecurityTest {
  private static final String TOKEN = "a-token-of-this-test";
  private static TestServer server;
  private static Path directory;

  @BeforeAll
  static void start() throws Exception {
    server = new TestServer("--config", "{dir}/server.yaml");
    directory = server.directory;
    certificate("ca", "CA:TRUE", null);
    certificate("server", "DNS:timecached.test", "ca");
    certificate("client", "URI:spiffe://test/billing", "ca");
    String hash =
        HexFormat.of()
            .formatHex(
                MessageDigest.getInstance("SHA-256")
                    .digest(TOKEN.getBytes(StandardCharsets.UTF_8)));
    Files.writeString(
        directory.resolve("server.yaml"),
        """
        listeners:
          - address: 127.0.0.1:0
            tls:
              certificate_file: {dir}/server.crt
              key_file: {dir}/server.key
              client_ca_file: {dir}/ca.crt
              client_certificate: optional
        access:
          file: {dir}/access.yaml
        log:
          format: json
        """
            .replace("{dir}", directory.toString()));
    Files.writeString(
        directory.resolve("access.yaml"),
        """
        principals:
          - name: billing
            certificate_sans: ["spiffe://test/billing"]
          - name: reader
            token_sha256: ["{hash}"]
        rules:
          - principals: [billing]
            namespaces: ["*"]
            verbs: [read, write]
          - principals: [reader]
            namespaces: ["default"]
            verbs: [read]
        """
            .replace("{hash}", hash));
    server.start();
  }

  @AfterAll
  static void stop() {
    server.close();
  }

  private static void certificate(String name, String subject, String issuer) throws Exception {
    List<String> command = new ArrayList<>();
    command.addAll(List.of("openssl", "req", "-x509", "-nodes", "-days", "2"));
    command.addAll(List.of("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"));
    command.addAll(List.of("-subj", "/CN=" + name, "-keyout", directory + "/" + name + ".key"));
    command.addAll(List.of("-out", directory + "/" + name + ".crt"));
    if (issuer != null) {
      command.addAll(List.of("-addext", "subjectAltName=" + subject));
      command.addAll(List.of("-addext", "basicConstraints=critical,CA:FALSE"));
      command.addAll(List.of("-CA", directory + "/" + issuer + ".crt"));
      command.addAll(List.of("-CAkey", directory + "/" + issuer + ".key"));
    }
    Path log = directory.resolve("openssl.log");
    Process process =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start();
    assertEquals(0, process.waitFor(), () -> log.toString());
  }

  private static TimecacheClientBuilder builder() {
    return server.builder().caFile(directory.resolve("ca.crt")).serverName("timecached.test");
  }

  @Test
  void clientsWithCertificates() {
    try (TimecacheClient client =
        builder()
            .certificate(directory.resolve("client.crt"), directory.resolve("client.key"))
            .build()) {
      client.put("k", "v");
      assertEquals("v", client.get("k").orElseThrow().valueUtf8());
    }
    try (TimecacheClient client = builder().build()) {
      TimecacheException error = assertThrows(TimecacheException.class, () -> client.get("k"));
      assertEquals(Code.UNAUTHENTICATED, error.code());
      assertTrue(error.is(ErrorReason.NO_CREDENTIALS));
    }
  }

  @Test
  void clientsWithTokens() throws Exception {
    Path file = directory.resolve("token");
    Files.writeString(file, TOKEN + "\n");
    String span = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (TimecacheClientBuilder builder :
        List.of(builder().token(TOKEN), builder().tokenFile(file))) {
      try (TimecacheClient client = builder.build()) {
        client.get("k");
        TimecacheException error =
            assertThrows(
                TimecacheException.class,
                () ->
                    client
                        .withBatching(false)
                        .withRequestId("call-7")
                        .withTraceparent(span)
                        .put("k", "v"));
        assertEquals(Code.PERMISSION_DENIED, error.code());
        assertEquals("reader", error.metadata().get("principal"));
      }
    }
    assertTrue(server.log().contains("\"request_id\":\"call-7\""), server.log());
    assertTrue(server.log().contains("\"traceparent\":\"" + span), server.log());
    try (TimecacheClient client = builder().token("another").build()) {
      assertTrue(
          assertThrows(TimecacheException.class, () -> client.get("k"))
              .is(ErrorReason.UNKNOWN_TOKEN));
    }
  }

  @Test
  void filesThatAreReplaced() throws Exception {
    certificate("stranger-ca", "CA:TRUE", null);
    certificate("stranger", "URI:spiffe://test/billing", "stranger-ca");
    for (String[] copy :
        new String[][] {{"stranger-ca.crt", "used-ca.crt"}, {"stranger.crt", "used.crt"}}) {
      Files.copy(directory.resolve(copy[0]), directory.resolve(copy[1]));
    }
    Files.copy(directory.resolve("stranger.key"), directory.resolve("used.key"));
    try (TimecacheClient client =
        server
            .builder()
            .caFile(directory.resolve("used-ca.crt"))
            .serverName("timecached.test")
            .certificate(directory.resolve("used.crt"), directory.resolve("used.key"))
            .build()) {
      assertEquals(
          Code.UNAVAILABLE, assertThrows(TimecacheException.class, () -> client.get("k")).code());
      // A key that has no certificate yet, and what is no certificate, leave all as it was.
      replace("client.key", "used.key");
      Files.writeString(directory.resolve("used-ca.crt"), "half a fi");
      assertEquals(
          Code.UNAVAILABLE, assertThrows(TimecacheException.class, () -> client.get("k")).code());
      replace("client.crt", "used.crt");
      replace("ca.crt", "used-ca.crt");
      TestServer.awaitServing(client);
      client.put("k", "v");
    }
  }

  private static void replace(String from, String to) throws Exception {
    Files.copy(
        directory.resolve(from), directory.resolve(to), StandardCopyOption.REPLACE_EXISTING);
  }

  @Test
  void filesThatAreNoCertificates() throws Exception {
    Path key = directory.resolve("client.key");
    Path certificate = directory.resolve("client.crt");
    for (TimecacheClientBuilder builder :
        List.of(
            builder().caFile(key),
            builder().certificate(key, key),
            builder().certificate(certificate, certificate),
            builder().certificate(directory.resolve("server.crt"), key))) {
      String message = assertThrows(IllegalArgumentException.class, builder::build).getMessage();
      assertTrue(message.contains(directory.toString()), message);
    }
    TimecacheClientBuilder absent = builder().caFile(directory.resolve("absent"));
    assertThrows(UncheckedIOException.class, absent::build);
  }

  @Test
  void healthNeedsNoRight() {
    try (TimecacheClient client = builder().build()) {
      assertTrue(client.isServing());
      assertTrue(
          assertThrows(TimecacheException.class, client::size).is(ErrorReason.NO_CREDENTIALS));
    }
  }

  private static void fails(TimecacheClientBuilder builder, String why) {
    try (TimecacheClient client = builder.build()) {
      TimecacheException error = assertThrows(TimecacheException.class, () -> client.get("k"));
      assertEquals(Code.UNAVAILABLE, error.code());
      assertTrue(error.getMessage().contains(why), error.getMessage());
      assertFalse(error.getMessage().contains("Pipeline"), error.getMessage());
    }
  }

  @Test
  void handshakesThatFailSayWhy() {
    fails(builder().serverName("another.test"), "No subject alternative DNS name matching another");
    fails(
        server.builder().tls().serverName("timecached.test"),
        "unable to find valid certification path");
    try (TestServer plain = new TestServer()) {
      plain.start();
      fails(plain.builder().tls(), "this client speaks TLS, and the server does not");
    }
  }

  @Test
  void whatIsNotSafe() throws Exception {
    assertThrows(
        IllegalArgumentException.class,
        () -> TimecacheClient.builder("example.com:7171").token(TOKEN).build());
    TimecacheClient.builder("127.0.0.1:7171").token(TOKEN).build().close();
    Path file = directory.resolve("no-token");
    Files.writeString(file, "two words");
    assertThrows(IllegalArgumentException.class, () -> builder().tokenFile(file));
    try (TimecacheClient client =
        TimecacheClient.builder(server.address())
            .caFile(directory.resolve("ca.crt"))
            .serverName("another.test")
            .build()) {
      assertEquals(
          Code.UNAVAILABLE, assertThrows(TimecacheException.class, () -> client.get("k")).code());
    }
  }

  @Test
  void unixSockets() {
    try (TestServer local = new TestServer("--listen", "unix:{dir}/socket")) {
      local.start();
      try (TimecacheClient client =
          TimecacheClient.connect("unix:" + local.directory + "/socket")) {
        client.put("k", "v");
        assertTrue(client.contains("k"));
      }
    }
  }
}
