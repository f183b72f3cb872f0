package dev.timecached.client;

import com.google.protobuf.ByteString;
import com.google.protobuf.Timestamp;
import dev.timecached.v1.ConsumeExpiredRequest;
import dev.timecached.v1.ConsumeExpiredResponse;
import dev.timecached.v1.CreateGroupRequest;
import dev.timecached.v1.CreateGroupResponse;
import dev.timecached.v1.ExecuteRequest;
import dev.timecached.v1.ExecuteResponse;
import dev.timecached.v1.ExpiredEvent;
import dev.timecached.v1.FetchExpiredRequest;
import dev.timecached.v1.FetchExpiredResponse;
import dev.timecached.v1.GetGroupRequest;
import dev.timecached.v1.GetGroupResponse;
import dev.timecached.v1.GetRequest;
import dev.timecached.v1.GetResponse;
import dev.timecached.v1.GroupServiceGrpc;
import dev.timecached.v1.ListUnsettledRequest;
import dev.timecached.v1.ListUnsettledResponse;
import dev.timecached.v1.NamespaceServiceGrpc;
import dev.timecached.v1.Operation;
import dev.timecached.v1.OperationResult;
import dev.timecached.v1.PutRequest;
import dev.timecached.v1.PutResponse;
import dev.timecached.v1.ScanRequest;
import dev.timecached.v1.ScanResponse;
import dev.timecached.v1.SeekGroupRequest;
import dev.timecached.v1.SeekGroupResponse;
import dev.timecached.v1.SettleExpiredRequest;
import dev.timecached.v1.SettleExpiredResponse;
import dev.timecached.v1.TimeCacheServiceGrpc;
import dev.timecached.v1.UnsettledState;
import dev.timecached.v1.WatchChangesRequest;
import dev.timecached.v1.WatchChangesResponse;
import dev.timecached.v1.WatchExpiredRequest;
import dev.timecached.v1.WatchExpiredResponse;
import io.grpc.ClientInterceptor;
import io.grpc.Grpc;
import io.grpc.InsecureServerCredentials;
import io.grpc.ForwardingServerCallListener.SimpleForwardingServerCallListener;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerInterceptors;
import io.grpc.Status;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/** A server that answers when a test says so: for what is hard to have from a real one. */
final class FakeServer extends TimeCacheServiceGrpc.TimeCacheServiceImplBase
    implements AutoCloseable {
  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

  /** A SettleExpired that was not answered. */
  record SettleCall(
      SettleExpiredRequest request, StreamObserver<SettleExpiredResponse> observer) {
    /** Each of its settlements has come to this. */
    void answer(com.google.rpc.Status error) {
      SettleExpiredResponse.Builder response = SettleExpiredResponse.newBuilder();
      request
          .getSettlementsList()
          .forEach(
              unused -> {
                if (error == null) {
                  response.addResultsBuilder();
                } else {
                  response.addResultsBuilder().setError(error);
                }
              });
      observer.onNext(response.build());
      observer.onCompleted();
    }

    void fail(Status.Code code) {
      observer.onError(code.toStatus().asRuntimeException());
    }
  }

  /** A request of a pipeline that was not answered. */
  record PipelineRequest(ExecuteRequest request, StreamObserver<ExecuteResponse> observer) {
    /** Each of its operations has succeeded. */
    void answer() {
      answer(unused -> OperationResult.getDefaultInstance());
    }

    void answer(Function<Operation, OperationResult> result) {
      ExecuteResponse.Builder response = ExecuteResponse.newBuilder();
      request.getOperationsList().forEach(one -> response.addResults(result.apply(one)));
      observer.onNext(response.build());
    }

    void breakOff(Status.Code code) {
      observer.onError(code.toStatus().withDescription("broke").asRuntimeException());
    }

    /** Each of its operations, a get or a put, has its own key for a value. */
    void echo() {
      answer(PipelineRequest::echo);
    }

    private static OperationResult echo(Operation operation) {
      OperationResult.Builder result = OperationResult.newBuilder();
      if (operation.hasGet()) {
        result.getGetBuilder().getEntryBuilder().setValue(operation.getGet().getKey());
      } else {
        result.getPutBuilder().getPreviousBuilder().setValue(operation.getPut().getKey());
      }
      return result.build();
    }

    /** Of its operations. */
    List<String> keys() {
      return request.getOperationsList().stream()
          .map(one -> one.hasPut() ? one.getPut().getKey() : one.getGet().getKey())
          .map(ByteString::toStringUtf8)
          .toList();
    }
  }

  final BlockingQueue<StreamObserver<ConsumeExpiredResponse>> members = new LinkedBlockingQueue<>();
  final BlockingQueue<ConsumeExpiredRequest> consumes = new LinkedBlockingQueue<>();
  final BlockingQueue<SettleCall> settles = new LinkedBlockingQueue<>();
  final BlockingQueue<PipelineRequest> pipelined = new LinkedBlockingQueue<>();
  volatile boolean holdsPlainCalls; // As pipelined, those that share a stream; else they succeed.
  final BlockingQueue<StreamObserver<ExecuteResponse>> halfClosed = new LinkedBlockingQueue<>();
  final CountDownLatch pipelineCancelled = new CountDownLatch(1);
  final BlockingQueue<StreamObserver<WatchExpiredResponse>> watches = new LinkedBlockingQueue<>();
  /** A scan that was not answered. */
  record ScanCall(ScanRequest request, StreamObserver<ScanResponse> observer) {}

  final BlockingQueue<ScanCall> scans = new LinkedBlockingQueue<>();

  /** A watch on changes that was not answered. */
  record ChangesCall(
      WatchChangesRequest request, StreamObserver<WatchChangesResponse> observer) {}

  final BlockingQueue<ChangesCall> changes = new LinkedBlockingQueue<>();
  final BlockingQueue<PutRequest> puts = new LinkedBlockingQueue<>();
  final BlockingQueue<ExecuteRequest> batches = new LinkedBlockingQueue<>();
  final BlockingQueue<FetchExpiredRequest> fetches = new LinkedBlockingQueue<>();
  final BlockingQueue<CreateGroupRequest> created = new LinkedBlockingQueue<>();
  final BlockingQueue<SeekGroupRequest> sought = new LinkedBlockingQueue<>();
  volatile boolean answersBatches; // With a result for each operation.
  volatile Duration ackTimeout = Duration.ofSeconds(30); // Of all groups.
  final BlockingQueue<Metadata> headers = new LinkedBlockingQueue<>(); // Of all calls.
  volatile String token; // Null: calls need none.
  volatile Runnable onRefusal = () -> {}; // Before it refuses one.
  volatile boolean answersTooFew;
  volatile Status failure; // Of all calls, with these trailers; null: they do not fail.
  final BlockingQueue<Status> failures = new LinkedBlockingQueue<>(); // Before it, once each.
  volatile Metadata trailers = new Metadata();
  private final Server server;

  FakeServer() {
    try {
      server =
          Grpc.newServerBuilderForPort(0, InsecureServerCredentials.create())
              .addService(ServerInterceptors.intercept(this, new Guard()))
              .addService(
                  ServerInterceptors.intercept(
                      new NamespaceServiceGrpc.NamespaceServiceImplBase() {}, new Guard()))
              .addService(
                  ServerInterceptors.intercept(
                      new Groups(), new Guard()))
              .build()
              .start();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private String address() {
    return "127.0.0.1:" + server.getPort();
  }

  TimecacheClientBuilder builder() {
    return TimecacheClient.builder(address());
  }

  /** For a client of a channel of the test's own. */
  ManagedChannel channel(ClientInterceptor interceptor) {
    return ManagedChannelBuilder.forTarget(address()).usePlaintext().intercept(interceptor).build();
  }

  private final class Groups extends GroupServiceGrpc.GroupServiceImplBase {
    @Override
    public void getGroup(GetGroupRequest request, StreamObserver<GetGroupResponse> observer) {
      GetGroupResponse.Builder response = GetGroupResponse.newBuilder();
      response.getGroupBuilder().getOptionsBuilder().setAckTimeout(Times.toProto(ackTimeout));
      observer.onNext(response.build());
      observer.onCompleted();
    }

    @Override
    public void createGroup(
        CreateGroupRequest request, StreamObserver<CreateGroupResponse> observer) {
      created.add(request);
      observer.onNext(CreateGroupResponse.getDefaultInstance());
      observer.onCompleted();
    }

    @Override
    public void seekGroup(SeekGroupRequest request, StreamObserver<SeekGroupResponse> observer) {
      sought.add(request);
      observer.onNext(SeekGroupResponse.newBuilder().setUnsettled(7).setDropped(2).build());
      observer.onCompleted();
    }

    @Override
    public void listUnsettled(
        ListUnsettledRequest request, StreamObserver<ListUnsettledResponse> observer) {
      String page = request.getPageToken();
      ListUnsettledResponse.Builder response =
          ListUnsettledResponse.newBuilder().setNextPageToken(page.isEmpty() ? "2" : "");
      response
          .addEventsBuilder()
          .setState(UnsettledState.UNSETTLED_STATE_IN_FLIGHT)
          .setMemberId(3)
          .setSince(Timestamp.newBuilder().setSeconds(1))
          .getEventBuilder()
          .setKey(request.getKeyPrefix().concat(ByteString.copyFromUtf8(page)));
      observer.onNext(response.build());
      observer.onCompleted();
    }
  }

  /** Keeps the headers, and refuses calls without the token, or all; of a pipeline the requests. */
  private final class Guard implements ServerInterceptor {
    @Override
    public <Q, A> ServerCall.Listener<Q> interceptCall(
        ServerCall<Q, A> call, Metadata metadata, ServerCallHandler<Q, A> next) {
      if (call.getMethodDescriptor().getType() == MethodDescriptor.MethodType.BIDI_STREAMING) {
        return new SimpleForwardingServerCallListener<>(next.startCall(call, metadata)) {
          private boolean isRefused;

          @Override
          public void onMessage(Q request) {
            isRefused = isRefused || refuses(call, metadataOf((ExecuteRequest) request, metadata));
            if (!isRefused) {
              super.onMessage(request);
            }
          }
        };
      }
      return refuses(call, metadata)
          ? new ServerCall.Listener<>() {}
          : next.startCall(call, metadata);
    }

    /** Those that the first operation would have, were it alone. */
    private Metadata metadataOf(ExecuteRequest request, Metadata ofStream) {
      Metadata merged = new Metadata();
      merged.merge(ofStream);
      if (request.getIndependent() && !request.getOperations(0).getTraceparent().isEmpty()) {
        merged.put(Traced.TRACEPARENT, request.getOperations(0).getTraceparent());
      }
      return merged;
    }

    private boolean refuses(ServerCall<?, ?> call, Metadata metadata) {
      headers.add(metadata);
      if (token != null && !("Bearer " + token).equals(metadata.get(AUTHORIZATION))) {
        onRefusal.run();
        call.close(Status.UNAUTHENTICATED, new Metadata());
        return true;
      }
      Status why = failures.isEmpty() ? failure : failures.poll();
      if (why != null) {
        call.close(why, trailers);
      }
      return why != null;
    }
  }

  @Override
  public void close() {
    server.shutdownNow();
  }

  static <T> T take(BlockingQueue<T> queue) throws InterruptedException {
    T one = queue.poll(30, TimeUnit.SECONDS);
    if (one == null) {
      throw new AssertionError("nothing came");
    }
    return one;
  }

  @Override
  public void consumeExpired(
      ConsumeExpiredRequest request, StreamObserver<ConsumeExpiredResponse> observer) {
    observer.onNext(
        ConsumeExpiredResponse.newBuilder().setNamespace(request.getNamespaces(0)).build());
    consumes.add(request);
    members.add(observer);
  }

  @Override
  public void watchExpired(
      WatchExpiredRequest request, StreamObserver<WatchExpiredResponse> observer) {
    observer.onNext(
        WatchExpiredResponse.newBuilder().setNamespace(request.getNamespaces(0)).build());
    watches.add(observer);
  }

  @Override
  public void scan(ScanRequest request, StreamObserver<ScanResponse> observer) {
    scans.add(new ScanCall(request, observer));
  }

  @Override
  public void get(GetRequest request, StreamObserver<GetResponse> observer) {
    observer.onNext(GetResponse.getDefaultInstance());
    observer.onCompleted();
  }

  @Override
  public void put(PutRequest request, StreamObserver<PutResponse> observer) {
    puts.add(request);
    observer.onNext(PutResponse.getDefaultInstance());
    observer.onCompleted();
  }

  @Override
  public void execute(ExecuteRequest request, StreamObserver<ExecuteResponse> observer) {
    batches.add(request);
    ExecuteResponse.Builder response = ExecuteResponse.newBuilder();
    if (answersBatches) {
      request.getOperationsList().forEach(unused -> response.addResultsBuilder());
    }
    observer.onNext(response.build());
    observer.onCompleted();
  }

  @Override
  public void watchChanges(
      WatchChangesRequest request, StreamObserver<WatchChangesResponse> observer) {
    changes.add(new ChangesCall(request, observer));
  }

  @Override
  public void fetchExpired(
      FetchExpiredRequest request, StreamObserver<FetchExpiredResponse> observer) {
    fetches.add(request);
    observer.onNext(
        FetchExpiredResponse.newBuilder()
            .addEvents(ExpiredEvent.newBuilder().setKey(ByteString.copyFromUtf8("k")))
            .setLost(2)
            .setDeliveredWatermark(Timestamp.newBuilder().setSeconds(9))
            .build());
    observer.onCompleted();
  }

  @Override
  public void settleExpired(
      SettleExpiredRequest request, StreamObserver<SettleExpiredResponse> observer) {
    settles.add(new SettleCall(request, observer));
  }

  @Override
  public StreamObserver<ExecuteRequest> pipeline(StreamObserver<ExecuteResponse> observer) {
    ((ServerCallStreamObserver<ExecuteResponse>) observer)
        .setOnCancelHandler(pipelineCancelled::countDown);
    return new StreamObserver<>() {
      @Override
      public void onNext(ExecuteRequest request) {
        PipelineRequest one = new PipelineRequest(request, observer);
        if (answersTooFew) {
          observer.onNext(ExecuteResponse.getDefaultInstance());
        } else if (request.getIndependent() && !holdsPlainCalls) {
          request.getOperationsList().stream()
              .filter(Operation::hasPut)
              .forEach(put -> puts.add(put.getPut()));
          one.answer();
        } else {
          pipelined.add(one);
        }
      }

      @Override
      public void onError(Throwable why) {}

      @Override
      public void onCompleted() {
        halfClosed.add(observer);
      }
    };
  }
}
