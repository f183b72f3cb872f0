import dev.timecached.client.GroupWorker;
import dev.timecached.client.GroupWorkerOptions;
import dev.timecached.client.Settle;
import dev.timecached.client.TimecacheClient;
import java.util.HexFormat;

/**
 * A member of a consumer group, for tests of groups whose members are of several languages.
 * Arguments: ADDRESS NAMESPACE GROUP COUNT. Acknowledges events, and prints a line for each: key,
 * value in hex and attempt, separated by tabs. Ends after COUNT events, or on SIGTERM.
 */
public final class Member {
  public static void main(String[] args) {
    int count = Integer.parseInt(args[3]);
    TimecacheClient client = TimecacheClient.builder(args[0]).namespace(args[1]).build();
    GroupWorkerOptions options = new GroupWorkerOptions(args[2]).threads(1).fromEarliest();
    GroupWorker[] worker = new GroupWorker[1];
    synchronized (worker) {
      worker[0] =
          client.worker(
              options,
              event -> {
                String value = HexFormat.of().formatHex(event.value().toByteArray());
                System.out.println(event.keyUtf8() + "\t" + value + "\t" + event.attempt());
                System.out.flush();
                synchronized (worker) {
                  if (worker[0].counters().handled() + 1 >= count) {
                    worker[0].requestStop();
                  }
                }
                return Settle.ack();
              });
    }
    Runtime.getRuntime().addShutdownHook(new Thread(worker[0]::close));
    worker[0].join();
    client.close();
  }
}
