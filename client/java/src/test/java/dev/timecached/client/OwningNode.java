package dev.timecached.client;

import com.google.protobuf.ByteString;
import com.google.protobuf.Message;
import dev.timecached.v1.AppendRequest;
import dev.timecached.v1.AppendResponse;
import dev.timecached.v1.CombineRequest;
import dev.timecached.v1.CombineResponse;
import dev.timecached.v1.ContainsRequest;
import dev.timecached.v1.ContainsResponse;
import dev.timecached.v1.ExecuteRequest;
import dev.timecached.v1.ExecuteResponse;
import dev.timecached.v1.GatherRequest;
import dev.timecached.v1.GatherResponse;
import dev.timecached.v1.GetOwnersRequest;
import dev.timecached.v1.GetOwnersResponse;
import dev.timecached.v1.GetRequest;
import dev.timecached.v1.GetResponse;
import dev.timecached.v1.NamespaceServiceGrpc;
import dev.timecached.v1.Operation;
import dev.timecached.v1.OperationResult;
import dev.timecached.v1.PutRequest;
import dev.timecached.v1.PutResponse;
import dev.timecached.v1.RemoveRequest;
import dev.timecached.v1.RemoveResponse;
import dev.timecached.v1.SizeRequest;
import dev.timecached.v1.SizeResponse;
import dev.timecached.v1.TimeCacheServiceGrpc;
import dev.timecached.v1.TouchRequest;
import dev.timecached.v1.TouchResponse;
import io.grpc.Attributes;
import io.grpc.Grpc;
import io.grpc.InsecureServerCredentials;
import io.grpc.Server;
import io.grpc.ServerTransportFilter;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** A node of a cluster that shares the ownership, of which a test says what it answers. */
final class OwningNode extends TimeCacheServiceGrpc.TimeCacheServiceImplBase
    implements AutoCloseable {
  /** A request that is not answered yet. */
  record Held(Runnable reply) {
    void answer() {
      reply.run();
    }
  }

  volatile List<String> owners = List.of(); // What GetOwners says, unless it refuses.
  volatile StatusRuntimeException refusal;
  volatile StatusRuntimeException error; // Of all other calls; null: none.
  volatile com.google.rpc.Status resultError; // Of each operation; null: none.
  volatile boolean hangs; // Requests are held, and never answered.
  volatile boolean holds; // The next one is held.
  final List<String> asked = new CopyOnWriteArrayList<>(); // The namespaces of GetOwners.
  final List<String> keys = new CopyOnWriteArrayList<>(); // Of what it did.
  final List<String> unaries = new CopyOnWriteArrayList<>(); // The same of calls of their own.
  final List<Integer> batches = new CopyOnWriteArrayList<>(); // Operations of each Execute.
  final BlockingQueue<Held> held = new LinkedBlockingQueue<>();
  final AtomicInteger cancelled = new AtomicInteger(); // Requests that were held.
  final AtomicInteger connections = new AtomicInteger();
  private final Set<StreamObserver<ExecuteResponse>> streams = ConcurrentHashMap.newKeySet();
  private int port;
  private Server server;

  OwningNode() {
    start();
  }

  void start() {
    try {
      server =
          Grpc.newServerBuilderForPort(port, InsecureServerCredentials.create())
              .addService(this)
              .addService(new Names())
              .addTransportFilter(new Counter())
              .build()
              .start();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
    port = server.getPort();
  }

  /** As a process that is killed. */
  void stop() {
    server.shutdownNow();
    try {
      server.awaitTermination(60, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  String address() {
    return "127.0.0.1:" + port;
  }

  void breakStreams(StatusRuntimeException why) {
    for (StreamObserver<ExecuteResponse> stream : streams) {
      end(stream, why);
    }
  }

  private void end(StreamObserver<ExecuteResponse> stream, StatusRuntimeException why) {
    if (streams.remove(stream)) {
      synchronized (stream) {
        stream.onError(why);
      }
    }
  }

  @Override
  public void close() {
    stop();
  }

  private final class Names extends NamespaceServiceGrpc.NamespaceServiceImplBase {
    @Override
    public void getOwners(GetOwnersRequest request, StreamObserver<GetOwnersResponse> observer) {
      asked.add(request.getName());
      if (refusal != null) {
        observer.onError(refusal);
        return;
      }
      observer.onNext(GetOwnersResponse.newBuilder().addAllAddresses(owners).build());
      observer.onCompleted();
    }
  }

  private final class Counter extends ServerTransportFilter {
    @Override
    public Attributes transportReady(Attributes attributes) {
      connections.incrementAndGet();
      return attributes;
    }

    @Override
    public void transportTerminated(Attributes attributes) {
      connections.decrementAndGet();
    }
  }

  private static ByteString keyOf(Operation operation) {
    return switch (operation.getRequestCase()) {
      case PUT -> operation.getPut().getKey();
      case GET -> operation.getGet().getKey();
      case REMOVE -> operation.getRemove().getKey();
      case CONTAINS -> operation.getContains().getKey();
      case TOUCH -> operation.getTouch().getKey();
      case APPEND -> operation.getAppend().getKey();
      case COMBINE -> operation.getCombine().getKey();
      case GATHER -> operation.getGather().getKey();
      default -> throw new AssertionError(operation);
    };
  }

  /** A put's version is made of its key. */
  private ExecuteResponse apply(ExecuteRequest request) {
    ExecuteResponse.Builder response = ExecuteResponse.newBuilder();
    for (Operation operation : request.getOperationsList()) {
      OperationResult.Builder result = response.addResultsBuilder();
      com.google.rpc.Status why = resultError;
      if (why != null) {
        result.setError(why);
        continue;
      }
      String key = keyOf(operation).toStringUtf8();
      keys.add(key);
      if (operation.hasPut()) {
        result.getPutBuilder().setVersion(key.hashCode());
      }
    }
    return response.build();
  }

  private boolean isHeld(Runnable reply) {
    if (!hangs && !holds) {
      return false;
    }
    holds = false;
    held.add(new Held(reply));
    return true;
  }

  private <A extends Message> void answer(
      StreamObserver<A> observer, ByteString key, A answer) {
    ((ServerCallStreamObserver<A>) observer).setOnCancelHandler(cancelled::incrementAndGet);
    Runnable reply =
        () -> {
          if (key != null) {
            keys.add(key.toStringUtf8());
            unaries.add(key.toStringUtf8());
          }
          observer.onNext(answer);
          observer.onCompleted();
        };
    if (isHeld(reply)) {
      return;
    }
    StatusRuntimeException why = error;
    if (why != null) {
      observer.onError(why);
    } else {
      reply.run();
    }
  }

  @Override
  public void size(SizeRequest request, StreamObserver<SizeResponse> observer) {
    answer(observer, null, SizeResponse.getDefaultInstance());
  }

  @Override
  public void put(PutRequest request, StreamObserver<PutResponse> observer) {
    int version = request.getKey().toStringUtf8().hashCode();
    answer(observer, request.getKey(), PutResponse.newBuilder().setVersion(version).build());
  }

  @Override
  public void get(GetRequest request, StreamObserver<GetResponse> observer) {
    answer(observer, request.getKey(), GetResponse.getDefaultInstance());
  }

  @Override
  public void remove(RemoveRequest request, StreamObserver<RemoveResponse> observer) {
    answer(observer, request.getKey(), RemoveResponse.getDefaultInstance());
  }

  @Override
  public void contains(ContainsRequest request, StreamObserver<ContainsResponse> observer) {
    answer(observer, request.getKey(), ContainsResponse.getDefaultInstance());
  }

  @Override
  public void touch(TouchRequest request, StreamObserver<TouchResponse> observer) {
    answer(observer, request.getKey(), TouchResponse.getDefaultInstance());
  }

  @Override
  public void append(AppendRequest request, StreamObserver<AppendResponse> observer) {
    answer(observer, request.getKey(), AppendResponse.getDefaultInstance());
  }

  @Override
  public void combine(CombineRequest request, StreamObserver<CombineResponse> observer) {
    answer(observer, request.getKey(), CombineResponse.getDefaultInstance());
  }

  @Override
  public void gather(GatherRequest request, StreamObserver<GatherResponse> observer) {
    answer(observer, request.getKey(), GatherResponse.getDefaultInstance());
  }

  @Override
  public void execute(ExecuteRequest request, StreamObserver<ExecuteResponse> observer) {
    ((ServerCallStreamObserver<ExecuteResponse>) observer)
        .setOnCancelHandler(cancelled::incrementAndGet);
    Runnable reply =
        () -> {
          batches.add(request.getOperationsCount());
          observer.onNext(apply(request));
          observer.onCompleted();
        };
    StatusRuntimeException why = error;
    if (why != null) {
      observer.onError(why);
    } else if (!isHeld(reply)) {
      reply.run();
    }
  }

  @Override
  public StreamObserver<ExecuteRequest> pipeline(StreamObserver<ExecuteResponse> observer) {
    streams.add(observer);
    ((ServerCallStreamObserver<ExecuteResponse>) observer)
        .setOnCancelHandler(() -> streams.remove(observer));
    return new StreamObserver<>() {
      @Override
      public void onNext(ExecuteRequest request) {
        Runnable reply =
            () -> {
              synchronized (observer) {
                if (streams.contains(observer)) {
                  observer.onNext(apply(request));
                }
              }
            };
        StatusRuntimeException why = error;
        if (why != null) {
          end(observer, why);
        } else if (!isHeld(reply)) {
          reply.run();
        }
      }

      @Override
      public void onError(Throwable why) {}

      @Override
      public void onCompleted() {
        if (streams.remove(observer)) {
          observer.onCompleted();
        }
      }
    };
  }
}
