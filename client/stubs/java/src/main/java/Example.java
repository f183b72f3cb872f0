import com.google.protobuf.ByteString;
import com.google.protobuf.Duration;
import com.google.rpc.ErrorInfo;
import dev.timecached.v1.ErrorReason;
import dev.timecached.v1.ExpiredEvent;
import dev.timecached.v1.GetRequest;
import dev.timecached.v1.PutRequest;
import dev.timecached.v1.PutResponse;
import dev.timecached.v1.TimeCacheServiceGrpc;
import dev.timecached.v1.WatchExpiredRequest;
import dev.timecached.v1.WatchExpiredResponse;
import io.grpc.Context;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.util.Iterator;
import java.util.concurrent.TimeUnit;

/** A put, the event of its expiry, and the reason of an error. */
public final class Example {
  public static void main(String[] args) throws Exception {
    String address = args.length > 0 ? args[0] : "127.0.0.1:7171";
    ManagedChannel channel =
        Grpc.newChannelBuilder(address, InsecureChannelCredentials.create()).build();
    try {
      TimeCacheServiceGrpc.TimeCacheServiceBlockingStub stub =
          TimeCacheServiceGrpc.newBlockingStub(channel);
      ByteString key = ByteString.copyFromUtf8("java/" + System.nanoTime());
      ExpiredEvent event = expiry(stub, key);
      System.out.println(
          "expired: " + event.getKey().toStringUtf8() + " " + event.getDeathTime().getSeconds());
      System.out.println("error: " + reasonOfAnError(stub, key));
    } finally {
      channel.shutdownNow().awaitTermination(5, TimeUnit.SECONDS);
    }
  }

  private static ExpiredEvent expiry(
      TimeCacheServiceGrpc.TimeCacheServiceBlockingStub stub, ByteString key) throws Exception {
    // Ends the watch when it is closed.
    try (Context.CancellableContext context = Context.current().withCancellation()) {
      // To go on after a break: .addResumeTokens(message.getResumeToken()).
      WatchExpiredRequest request =
          WatchExpiredRequest.newBuilder().addNamespaces("default").setKeyPrefix(key).build();
      Iterator<WatchExpiredResponse> watch =
          context.call(() -> stub.withDeadlineAfter(10, TimeUnit.SECONDS).watchExpired(request));
      // The first message says that the watch stands: what dies from now on is told.
      watch.next();
      PutResponse put =
          stub.withDeadlineAfter(5, TimeUnit.SECONDS)
              .put(
                  PutRequest.newBuilder()
                      .setNamespace("default")
                      .setKey(key)
                      .setValue(ByteString.copyFromUtf8("v"))
                      .setTtl(Duration.newBuilder().setSeconds(1))
                      .build());
      WatchExpiredResponse message = watch.next();
      while (message.getEventsCount() == 0) {
        message = watch.next();
      }
      ExpiredEvent event = message.getEvents(0);
      if (!event.getKey().equals(key) || event.getVersion() != put.getVersion()) {
        throw new IllegalStateException("another entry expired: " + event);
      }
      return event;
    }
  }

  private static String reasonOfAnError(
      TimeCacheServiceGrpc.TimeCacheServiceBlockingStub stub, ByteString key) throws Exception {
    try {
      stub.withDeadlineAfter(5, TimeUnit.SECONDS)
          .get(GetRequest.newBuilder().setNamespace("absent").setKey(key).build());
      throw new IllegalStateException("a namespace that does not exist was found");
    } catch (StatusRuntimeException error) {
      for (com.google.protobuf.Any detail : StatusProto.fromThrowable(error).getDetailsList()) {
        if (!detail.is(ErrorInfo.class)) {
          continue;
        }
        ErrorInfo info = detail.unpack(ErrorInfo.class);
        String notFound = ErrorReason.NAMESPACE_NOT_FOUND.name();
        if (!info.getDomain().equals("timecached") || !info.getReason().equals(notFound)) {
          throw new IllegalStateException("another error: " + info);
        }
        return info.getReason();
      }
      throw error;
    }
  }
}
