package dev.timecached.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Describes the server. Errors are as in data.proto.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class ServerServiceGrpc {

  private ServerServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "timecache.v1.ServerService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.GetServerRequest,
      dev.timecached.v1.GetServerResponse> getGetServerMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetServer",
      requestType = dev.timecached.v1.GetServerRequest.class,
      responseType = dev.timecached.v1.GetServerResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.GetServerRequest,
      dev.timecached.v1.GetServerResponse> getGetServerMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.GetServerRequest, dev.timecached.v1.GetServerResponse> getGetServerMethod;
    if ((getGetServerMethod = ServerServiceGrpc.getGetServerMethod) == null) {
      synchronized (ServerServiceGrpc.class) {
        if ((getGetServerMethod = ServerServiceGrpc.getGetServerMethod) == null) {
          ServerServiceGrpc.getGetServerMethod = getGetServerMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.GetServerRequest, dev.timecached.v1.GetServerResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetServer"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.GetServerRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.GetServerResponse.getDefaultInstance()))
              .setSchemaDescriptor(new ServerServiceMethodDescriptorSupplier("GetServer"))
              .build();
        }
      }
    }
    return getGetServerMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.BackupJournalRequest,
      dev.timecached.v1.BackupJournalResponse> getBackupJournalMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "BackupJournal",
      requestType = dev.timecached.v1.BackupJournalRequest.class,
      responseType = dev.timecached.v1.BackupJournalResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.BackupJournalRequest,
      dev.timecached.v1.BackupJournalResponse> getBackupJournalMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.BackupJournalRequest, dev.timecached.v1.BackupJournalResponse> getBackupJournalMethod;
    if ((getBackupJournalMethod = ServerServiceGrpc.getBackupJournalMethod) == null) {
      synchronized (ServerServiceGrpc.class) {
        if ((getBackupJournalMethod = ServerServiceGrpc.getBackupJournalMethod) == null) {
          ServerServiceGrpc.getBackupJournalMethod = getBackupJournalMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.BackupJournalRequest, dev.timecached.v1.BackupJournalResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "BackupJournal"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.BackupJournalRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.BackupJournalResponse.getDefaultInstance()))
              .setSchemaDescriptor(new ServerServiceMethodDescriptorSupplier("BackupJournal"))
              .build();
        }
      }
    }
    return getBackupJournalMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static ServerServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<ServerServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<ServerServiceStub>() {
        @java.lang.Override
        public ServerServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new ServerServiceStub(channel, callOptions);
        }
      };
    return ServerServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static ServerServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<ServerServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<ServerServiceBlockingV2Stub>() {
        @java.lang.Override
        public ServerServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new ServerServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return ServerServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static ServerServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<ServerServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<ServerServiceBlockingStub>() {
        @java.lang.Override
        public ServerServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new ServerServiceBlockingStub(channel, callOptions);
        }
      };
    return ServerServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static ServerServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<ServerServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<ServerServiceFutureStub>() {
        @java.lang.Override
        public ServerServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new ServerServiceFutureStub(channel, callOptions);
        }
      };
    return ServerServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Describes the server. Errors are as in data.proto.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Describes the server itself: its version, its start time, its limits and their
     * use, its journal. With access rules, open to callers with any permission; the use
     * of the limits and the journal need VERB_READ on the pattern "*", as they cover
     * all namespaces.
     * Idempotent.
     * </pre>
     */
    default void getServer(dev.timecached.v1.GetServerRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.GetServerResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetServerMethod(), responseObserver);
    }

    /**
     * <pre>
     * Streams a backup of the journal, while the server keeps running. It has every
     * change that was acknowledged before the call began (of durability ASYNC or SYNC),
     * and shows all namespaces at one moment. `timecached --restore` or `timecachectl
     * journal restore` turns it into a journal's directory again.
     * The backup is the concatenation of `data`: a tar archive. It is complete only if
     * the stream ends with OK. The server copies nothing: it keeps the files that the
     * client has not read yet, even those that it would otherwise trim. The server ends
     * the stream of a client that reads nothing for limits.response_timeout
     * (CANCELLED). A server that stops ends the stream with UNAVAILABLE (DRAINING).
     * FAILED_PRECONDITION (NO_JOURNAL): the server has no journal. RESOURCE_EXHAUSTED
     * (MAX_BACKUPS): two backups are in progress. With access rules, needs VERB_ADMIN
     * on the pattern "*": a backup has all keys and values. Each call is a new backup.
     * </pre>
     */
    default void backupJournal(dev.timecached.v1.BackupJournalRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.BackupJournalResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getBackupJournalMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service ServerService.
   * <pre>
   * Describes the server. Errors are as in data.proto.
   * </pre>
   */
  public static abstract class ServerServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return ServerServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service ServerService.
   * <pre>
   * Describes the server. Errors are as in data.proto.
   * </pre>
   */
  public static final class ServerServiceStub
      extends io.grpc.stub.AbstractAsyncStub<ServerServiceStub> {
    private ServerServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected ServerServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new ServerServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Describes the server itself: its version, its start time, its limits and their
     * use, its journal. With access rules, open to callers with any permission; the use
     * of the limits and the journal need VERB_READ on the pattern "*", as they cover
     * all namespaces.
     * Idempotent.
     * </pre>
     */
    public void getServer(dev.timecached.v1.GetServerRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.GetServerResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetServerMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Streams a backup of the journal, while the server keeps running. It has every
     * change that was acknowledged before the call began (of durability ASYNC or SYNC),
     * and shows all namespaces at one moment. `timecached --restore` or `timecachectl
     * journal restore` turns it into a journal's directory again.
     * The backup is the concatenation of `data`: a tar archive. It is complete only if
     * the stream ends with OK. The server copies nothing: it keeps the files that the
     * client has not read yet, even those that it would otherwise trim. The server ends
     * the stream of a client that reads nothing for limits.response_timeout
     * (CANCELLED). A server that stops ends the stream with UNAVAILABLE (DRAINING).
     * FAILED_PRECONDITION (NO_JOURNAL): the server has no journal. RESOURCE_EXHAUSTED
     * (MAX_BACKUPS): two backups are in progress. With access rules, needs VERB_ADMIN
     * on the pattern "*": a backup has all keys and values. Each call is a new backup.
     * </pre>
     */
    public void backupJournal(dev.timecached.v1.BackupJournalRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.BackupJournalResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getBackupJournalMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service ServerService.
   * <pre>
   * Describes the server. Errors are as in data.proto.
   * </pre>
   */
  public static final class ServerServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<ServerServiceBlockingV2Stub> {
    private ServerServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected ServerServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new ServerServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Describes the server itself: its version, its start time, its limits and their
     * use, its journal. With access rules, open to callers with any permission; the use
     * of the limits and the journal need VERB_READ on the pattern "*", as they cover
     * all namespaces.
     * Idempotent.
     * </pre>
     */
    public dev.timecached.v1.GetServerResponse getServer(dev.timecached.v1.GetServerRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetServerMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams a backup of the journal, while the server keeps running. It has every
     * change that was acknowledged before the call began (of durability ASYNC or SYNC),
     * and shows all namespaces at one moment. `timecached --restore` or `timecachectl
     * journal restore` turns it into a journal's directory again.
     * The backup is the concatenation of `data`: a tar archive. It is complete only if
     * the stream ends with OK. The server copies nothing: it keeps the files that the
     * client has not read yet, even those that it would otherwise trim. The server ends
     * the stream of a client that reads nothing for limits.response_timeout
     * (CANCELLED). A server that stops ends the stream with UNAVAILABLE (DRAINING).
     * FAILED_PRECONDITION (NO_JOURNAL): the server has no journal. RESOURCE_EXHAUSTED
     * (MAX_BACKUPS): two backups are in progress. With access rules, needs VERB_ADMIN
     * on the pattern "*": a backup has all keys and values. Each call is a new backup.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, dev.timecached.v1.BackupJournalResponse>
        backupJournal(dev.timecached.v1.BackupJournalRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getBackupJournalMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service ServerService.
   * <pre>
   * Describes the server. Errors are as in data.proto.
   * </pre>
   */
  public static final class ServerServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<ServerServiceBlockingStub> {
    private ServerServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected ServerServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new ServerServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Describes the server itself: its version, its start time, its limits and their
     * use, its journal. With access rules, open to callers with any permission; the use
     * of the limits and the journal need VERB_READ on the pattern "*", as they cover
     * all namespaces.
     * Idempotent.
     * </pre>
     */
    public dev.timecached.v1.GetServerResponse getServer(dev.timecached.v1.GetServerRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetServerMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams a backup of the journal, while the server keeps running. It has every
     * change that was acknowledged before the call began (of durability ASYNC or SYNC),
     * and shows all namespaces at one moment. `timecached --restore` or `timecachectl
     * journal restore` turns it into a journal's directory again.
     * The backup is the concatenation of `data`: a tar archive. It is complete only if
     * the stream ends with OK. The server copies nothing: it keeps the files that the
     * client has not read yet, even those that it would otherwise trim. The server ends
     * the stream of a client that reads nothing for limits.response_timeout
     * (CANCELLED). A server that stops ends the stream with UNAVAILABLE (DRAINING).
     * FAILED_PRECONDITION (NO_JOURNAL): the server has no journal. RESOURCE_EXHAUSTED
     * (MAX_BACKUPS): two backups are in progress. With access rules, needs VERB_ADMIN
     * on the pattern "*": a backup has all keys and values. Each call is a new backup.
     * </pre>
     */
    public java.util.Iterator<dev.timecached.v1.BackupJournalResponse> backupJournal(
        dev.timecached.v1.BackupJournalRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getBackupJournalMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service ServerService.
   * <pre>
   * Describes the server. Errors are as in data.proto.
   * </pre>
   */
  public static final class ServerServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<ServerServiceFutureStub> {
    private ServerServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected ServerServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new ServerServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Describes the server itself: its version, its start time, its limits and their
     * use, its journal. With access rules, open to callers with any permission; the use
     * of the limits and the journal need VERB_READ on the pattern "*", as they cover
     * all namespaces.
     * Idempotent.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.GetServerResponse> getServer(
        dev.timecached.v1.GetServerRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetServerMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_GET_SERVER = 0;
  private static final int METHODID_BACKUP_JOURNAL = 1;

  private static final class MethodHandlers<Req, Resp> implements
      io.grpc.stub.ServerCalls.UnaryMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.ServerStreamingMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.ClientStreamingMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.BidiStreamingMethod<Req, Resp> {
    private final AsyncService serviceImpl;
    private final int methodId;

    MethodHandlers(AsyncService serviceImpl, int methodId) {
      this.serviceImpl = serviceImpl;
      this.methodId = methodId;
    }

    @java.lang.Override
    @java.lang.SuppressWarnings("unchecked")
    public void invoke(Req request, io.grpc.stub.StreamObserver<Resp> responseObserver) {
      switch (methodId) {
        case METHODID_GET_SERVER:
          serviceImpl.getServer((dev.timecached.v1.GetServerRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.GetServerResponse>) responseObserver);
          break;
        case METHODID_BACKUP_JOURNAL:
          serviceImpl.backupJournal((dev.timecached.v1.BackupJournalRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.BackupJournalResponse>) responseObserver);
          break;
        default:
          throw new AssertionError();
      }
    }

    @java.lang.Override
    @java.lang.SuppressWarnings("unchecked")
    public io.grpc.stub.StreamObserver<Req> invoke(
        io.grpc.stub.StreamObserver<Resp> responseObserver) {
      switch (methodId) {
        default:
          throw new AssertionError();
      }
    }
  }

  public static final io.grpc.ServerServiceDefinition bindService(AsyncService service) {
    return io.grpc.ServerServiceDefinition.builder(getServiceDescriptor())
        .addMethod(
          getGetServerMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.GetServerRequest,
              dev.timecached.v1.GetServerResponse>(
                service, METHODID_GET_SERVER)))
        .addMethod(
          getBackupJournalMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              dev.timecached.v1.BackupJournalRequest,
              dev.timecached.v1.BackupJournalResponse>(
                service, METHODID_BACKUP_JOURNAL)))
        .build();
  }

  private static abstract class ServerServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    ServerServiceBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.timecached.v1.ServerProto.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("ServerService");
    }
  }

  private static final class ServerServiceFileDescriptorSupplier
      extends ServerServiceBaseDescriptorSupplier {
    ServerServiceFileDescriptorSupplier() {}
  }

  private static final class ServerServiceMethodDescriptorSupplier
      extends ServerServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    ServerServiceMethodDescriptorSupplier(java.lang.String methodName) {
      this.methodName = methodName;
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.MethodDescriptor getMethodDescriptor() {
      return getServiceDescriptor().findMethodByName(methodName);
    }
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (ServerServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new ServerServiceFileDescriptorSupplier())
              .addMethod(getGetServerMethod())
              .addMethod(getBackupJournalMethod())
              .build();
        }
      }
    }
    return result;
  }
}
