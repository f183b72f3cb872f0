import dev.timecached.client.TimecacheClient;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Runs the programs and the snippets of the README, and the examples, against a server whose
 * virtual clock it moves on all the time. Arguments: the server's address, the README. A line for
 * each; exits with 1 if one has failed.
 */
public final class Samples {
  private static final Map<String, List<String>> EXAMPLES =
      Map.of(
          "OrderTimeouts",
          List.of(
              "order-1 placed",
              "order-2 placed",
              "order-1 paid",
              "order-2 cancelled: 1 lamp",
              "order-2 is too late to be paid"),
          "SessionStore",
          List.of(
              "still here: ann, 1 book",
              "timed out: bob",
              "bob is gone",
              "logged out: ann, 1 book"));

  private static String address;
  private static int failed;

  public static void main(String[] args) throws Exception {
    address = args[0];
    try (TimecacheClient client =
        TimecacheClient.builder(address).timeout(Duration.ofMinutes(1)).build()) {
      client
          .getServer(); // The first call of a process loads classes, which takes a busy machine
                        // long.
    }
    for (var example : EXAMPLES.entrySet()) {
      check(example.getKey(), example.getKey(), example.getValue());
    }
    try (TimecacheClient client = TimecacheClient.connect(address)) {
      Thread ticking = new Thread(() -> tick(client));
      ticking.setDaemon(true);
      ticking.start();
      String readme = Files.readString(Path.of(args[1]));
      Matcher programs =
          Pattern.compile("```java\n([^`]*?class (\\w+) [^`]*)```\\s*(?:```text\n([^`]*)```)?")
              .matcher(readme);
      while (programs.find()) {
        String output = programs.group(3) == null ? "" : programs.group(3);
        check("README: " + programs.group(2), programs.group(2), output.lines().toList());
      }
      for (Method snippet : Class.forName("Snippets").getDeclaredMethods()) {
        if (!snippet.isSynthetic()) {
          attempt("README: " + snippet.getName(), () -> snippet.invoke(null, client));
        }
      }
    }
    System.exit(failed > 0 ? 1 : 0);
  }

  private interface Run {
    void run() throws Exception;
  }

  private static void check(String name, String program, List<String> expected) {
    attempt(
        name,
        () -> {
          PrintStream out = System.out;
          ByteArrayOutputStream output = new ByteArrayOutputStream();
          System.setOut(new PrintStream(output, true, StandardCharsets.UTF_8));
          try {
            Method main = Class.forName(program).getMethod("main", String[].class);
            main.invoke(null, (Object) new String[] {address});
          } finally {
            System.setOut(out);
          }
          List<String> lines =
              new ArrayList<>(output.toString(StandardCharsets.UTF_8).lines().toList());
          if (!lines.equals(expected)) {
            throw new AssertionError("expected " + expected + ", printed " + lines);
          }
        });
  }

  private static void attempt(String name, Run run) {
    try {
      run.run();
      System.out.println("ok " + name);
    } catch (Throwable e) {
      ++failed;
      System.out.println("FAILED " + name);
      e.printStackTrace(System.out);
    }
  }

  private static void tick(TimecacheClient client) {
    while (true) {
      try {
        client.virtualClock().advance(Duration.ofMillis(500));
        Thread.sleep(20);
      } catch (Exception e) {
        return;
      }
    }
  }
}
