package dev.timecached.client;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** A server of a test's own, and a directory. Tests that make one are {@link NeedsServer}. */
final class TestServer implements AutoCloseable {
  private static final Pattern STARTED =
      Pattern.compile("\"event\":\"server_started\".*?\"address\":\"([^\"]*)\"");

  final Path directory;
  private final List<String> arguments;
  private Process process;
  private String address = "127.0.0.1:0";

  /** On a virtual clock. */
  static TestServer onVirtualClock(String... arguments) {
    TestServer server = new TestServer(arguments);
    server.arguments.add("--virtual-clock");
    server.start();
    return server;
  }

  /** Not started yet; the arguments may have {@code {dir}}, its directory. */
  TestServer(String... arguments) {
    try {
      directory = Files.createTempDirectory("timecache-test");
    } catch (IOException e) {
      throw new AssertionError(e);
    }
    this.arguments = new ArrayList<>();
    for (String argument : arguments) {
      this.arguments.add(argument.replace("{dir}", directory.toString()));
    }
  }

  /** Starts it, again under the same address, and waits until it serves. */
  void start() {
    List<String> command = new ArrayList<>();
    command.add(System.getenv("TIMECACHED"));
    command.addAll(List.of("--log-format", "json"));
    if (!arguments.contains("--config")) {
      command.addAll(List.of("--listen", address));
    }
    command.addAll(arguments);
    try {
      Path log = directory.resolve("log");
      process = new ProcessBuilder(command).redirectError(log.toFile()).start();
      for (int i = 0; i < 6000; ++i) {
        Matcher matcher = STARTED.matcher(Files.readString(log));
        if (matcher.find()) {
          address = matcher.group(1);
          return;
        }
        if (!process.isAlive()) {
          break;
        }
        Thread.sleep(10);
      }
      throw new AssertionError("the server has not started: " + Files.readString(log));
    } catch (IOException | InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  String address() {
    return address;
  }

  String log() {
    try {
      return Files.readString(directory.resolve("log"));
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /** Without a last word. */
  void kill() {
    process.destroyForcibly();
    await();
  }

  /** In good order. */
  void stop() {
    process.destroy();
    await();
  }

  private void await() {
    try {
      if (!process.waitFor(60, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        throw new AssertionError("the server does not stop");
      }
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** With more time than by default: machines that run tests are busy. */
  TimecacheClientBuilder builder() {
    return TimecacheClient.builder(address).timeout(Duration.ofSeconds(60));
  }

  TimecacheClient client() {
    return builder().build();
  }

  /** Until this client is connected again. */
  static void awaitServer(TimecacheClient client) {
    await(client::getServer);
  }

  /** As {@link #awaitServer}, for a client without any right. */
  static void awaitServing(TimecacheClient client) {
    await(client::isServing);
  }

  private static void await(Runnable call) {
    while (true) {
      try {
        call.run();
        return;
      } catch (TimecacheException e) {
        if (!e.isConnectionLost()) {
          throw e;
        }
        Rpc.sleep(5_000_000);
      }
    }
  }

  @Override
  public void close() {
    kill();
    try (Stream<Path> files = Files.walk(directory)) {
      files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }
}
