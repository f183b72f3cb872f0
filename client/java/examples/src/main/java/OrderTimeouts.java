import dev.timecached.client.EventHandler;
import dev.timecached.client.ExpiredEvent;
import dev.timecached.client.GroupWorker;
import dev.timecached.client.GroupWorkerOptions;
import dev.timecached.client.PutOptions;
import dev.timecached.client.TimecacheClient;
import dev.timecached.client.TimecacheException;
import dev.timecached.client.Times;
import dev.timecached.v1.ErrorReason;
import dev.timecached.v1.GroupOptions;
import dev.timecached.v1.NamespaceOptions;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;

/**
 * Orders that are cancelled unless they are paid within 15 minutes. An order is an entry; paying it
 * removes the entry; its expiry is an event that one worker of the group "cancel" handles. Any
 * number of shops and workers may run at a time: an order that one worker fails to cancel goes to
 * another.
 *
 * <p>Argument: the server's address. On a server with --virtual-clock it moves the clock on by
 * itself.
 */
public final class OrderTimeouts {
  private static final Duration TIME_TO_PAY = Duration.ofMinutes(15);

  private final TimecacheClient orders;

  private OrderTimeouts(TimecacheClient client) {
    this.orders = client.in("orders");
  }

  /** Makes the group before the first order: it keeps it, however late the first worker comes. */
  private void prepare() {
    NamespaceOptions options =
        NamespaceOptions.newBuilder().setTtl(Times.toProto(TIME_TO_PAY)).build();
    unlessThere(() -> orders.createNamespace("orders", options), ErrorReason.NAMESPACE_EXISTS);
    unlessThere(
        () -> orders.createGroup("cancel", GroupOptions.getDefaultInstance(), true),
        ErrorReason.GROUP_EXISTS);
  }

  private static void unlessThere(Runnable make, ErrorReason isThere) {
    try {
      make.run();
    } catch (TimecacheException e) {
      if (!e.is(isThere)) {
        throw e;
      }
    }
  }

  private void place(String id, String order) {
    orders.put(id, order, new PutOptions().ttl(TIME_TO_PAY).ifAbsent());
    System.out.println(id + " placed");
  }

  /** Whether it was in time: an order that is cancelled, or about to be, cannot be paid. */
  private boolean pay(String id) {
    boolean inTime = orders.remove(id).removed();
    System.out.println(id + (inTime ? " paid" : " is too late to be paid"));
    return inTime;
  }

  private static void cancel(ExpiredEvent order) {
    System.out.println(order.keyUtf8() + " cancelled: " + order.valueUtf8());
  }

  public static void main(String[] args) throws InterruptedException {
    try (TimecacheClient client = TimecacheClient.connect(args[0])) {
      OrderTimeouts shop = new OrderTimeouts(client);
      shop.prepare();
      CountDownLatch cancelled = new CountDownLatch(1);
      EventHandler handler =
          EventHandler.acking(
              order -> {
                cancel(order);
                cancelled.countDown();
              });
      try (GroupWorker worker =
          shop.orders.worker(new GroupWorkerOptions("cancel"), handler)) {
        shop.place("order-1", "2 books");
        shop.place("order-2", "1 lamp");
        shop.pay("order-1");
        advance(client, Duration.ofMinutes(16));
        cancelled.await();
        shop.pay("order-2");
      }
    }
  }

  private static void advance(TimecacheClient client, Duration by) {
    try {
      client.virtualClock().advance(by);
    } catch (TimecacheException e) {
      System.out.println("waiting for real time");
    }
  }
}
