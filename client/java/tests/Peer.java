import com.google.protobuf.ByteString;
import dev.timecached.client.GatherOptions;
import dev.timecached.client.GatherResult;
import dev.timecached.client.GatheredParts;
import dev.timecached.client.TimecacheClient;
import dev.timecached.client.WatchOptions;
import dev.timecached.client.Watcher;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * Does what tests/clients/cross_test.py says, so that clients in several languages meet:
 * client/python/tests/peer.py describes the lines that this reads and writes. Arguments: ADDRESS
 * NAMESPACE.
 */
public final class Peer {
  public static void main(String[] args) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    try (TimecacheClient client =
        TimecacheClient.builder(args[0])
            .namespace(args[1])
            .timeout(Duration.ofMinutes(1))
            .build()) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        System.out.println(perform(client, line.split(" ")));
      }
    }
  }

  private static String perform(TimecacheClient client, String[] words) {
    return switch (words[0]) {
      case "put" -> {
        client.put(fromHex(words[1]), fromHex(words[2]));
        yield "done";
      }
      case "get" ->
          client
              .get(fromHex(words[1]))
              .map(entry -> shown(entry.value(), entry.parts()))
              .orElse("none");
      case "append" ->
          Long.toString(client.append(fromHex(words[1]), fromHex(words[2])).valueBytes());
      case "combine" ->
          Long.toString(client.add(fromHex(words[1]), Long.parseLong(words[2])).result());
      case "gather" -> gather(client, words);
      case "expired" -> expired(client, Integer.parseInt(words[1]));
      default -> throw new IllegalArgumentException(words[0]);
    };
  }

  private static String gather(TimecacheClient client, String[] words) {
    GatherResult result =
        client.gather(
            fromHex(words[1]),
            fromHex(words[2]),
            fromHex(words[3]),
            GatherOptions.expect(Integer.parseInt(words[4])));
    return result
        .parts()
        .map(
            all ->
                all.parts().stream()
                    .map(part -> toHex(part.name()) + "=" + toHex(part.value()))
                    .collect(Collectors.joining(" ")))
        .orElse("waiting");
  }

  private static String expired(TimecacheClient client, int count) {
    List<String> events = new ArrayList<>();
    try (Watcher watcher = client.watch(new WatchOptions().fromEarliest())) {
      while (events.size() < count) {
        watcher
            .next()
            .events()
            .forEach(
                event ->
                    events.add(toHex(event.key()) + "=" + shown(event.value(), event.parts())));
      }
    }
    return String.join(" ", events);
  }

  private static String shown(ByteString value, Optional<GatheredParts> parts) {
    return parts
        .map(
            all ->
                all.parts().stream()
                    .map(part -> toHex(part.name()) + ":" + toHex(part.value()))
                    .collect(Collectors.joining(",")))
        .orElseGet(() -> toHex(value));
  }

  private static String toHex(ByteString value) {
    return value.isEmpty() ? "-" : HexFormat.of().formatHex(value.toByteArray());
  }

  private static ByteString fromHex(String word) {
    return word.equals("-")
        ? ByteString.EMPTY
        : ByteString.copyFrom(HexFormat.of().parseHex(word));
  }
}
