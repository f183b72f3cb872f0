package dev.timecached.testing.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * The server's clock. It starts at 1970-01-01T00:00:00Z and never goes back.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class VirtualClockServiceGrpc {

  private VirtualClockServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "timecache.testing.v1.VirtualClockService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.timecached.testing.v1.AdvanceRequest,
      dev.timecached.testing.v1.AdvanceResponse> getAdvanceMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Advance",
      requestType = dev.timecached.testing.v1.AdvanceRequest.class,
      responseType = dev.timecached.testing.v1.AdvanceResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.testing.v1.AdvanceRequest,
      dev.timecached.testing.v1.AdvanceResponse> getAdvanceMethod() {
    io.grpc.MethodDescriptor<dev.timecached.testing.v1.AdvanceRequest, dev.timecached.testing.v1.AdvanceResponse> getAdvanceMethod;
    if ((getAdvanceMethod = VirtualClockServiceGrpc.getAdvanceMethod) == null) {
      synchronized (VirtualClockServiceGrpc.class) {
        if ((getAdvanceMethod = VirtualClockServiceGrpc.getAdvanceMethod) == null) {
          VirtualClockServiceGrpc.getAdvanceMethod = getAdvanceMethod =
              io.grpc.MethodDescriptor.<dev.timecached.testing.v1.AdvanceRequest, dev.timecached.testing.v1.AdvanceResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Advance"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.testing.v1.AdvanceRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.testing.v1.AdvanceResponse.getDefaultInstance()))
              .setSchemaDescriptor(new VirtualClockServiceMethodDescriptorSupplier("Advance"))
              .build();
        }
      }
    }
    return getAdvanceMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.testing.v1.NowRequest,
      dev.timecached.testing.v1.NowResponse> getNowMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Now",
      requestType = dev.timecached.testing.v1.NowRequest.class,
      responseType = dev.timecached.testing.v1.NowResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.testing.v1.NowRequest,
      dev.timecached.testing.v1.NowResponse> getNowMethod() {
    io.grpc.MethodDescriptor<dev.timecached.testing.v1.NowRequest, dev.timecached.testing.v1.NowResponse> getNowMethod;
    if ((getNowMethod = VirtualClockServiceGrpc.getNowMethod) == null) {
      synchronized (VirtualClockServiceGrpc.class) {
        if ((getNowMethod = VirtualClockServiceGrpc.getNowMethod) == null) {
          VirtualClockServiceGrpc.getNowMethod = getNowMethod =
              io.grpc.MethodDescriptor.<dev.timecached.testing.v1.NowRequest, dev.timecached.testing.v1.NowResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Now"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.testing.v1.NowRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.testing.v1.NowResponse.getDefaultInstance()))
              .setSchemaDescriptor(new VirtualClockServiceMethodDescriptorSupplier("Now"))
              .build();
        }
      }
    }
    return getNowMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static VirtualClockServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<VirtualClockServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<VirtualClockServiceStub>() {
        @java.lang.Override
        public VirtualClockServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new VirtualClockServiceStub(channel, callOptions);
        }
      };
    return VirtualClockServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static VirtualClockServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<VirtualClockServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<VirtualClockServiceBlockingV2Stub>() {
        @java.lang.Override
        public VirtualClockServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new VirtualClockServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return VirtualClockServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static VirtualClockServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<VirtualClockServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<VirtualClockServiceBlockingStub>() {
        @java.lang.Override
        public VirtualClockServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new VirtualClockServiceBlockingStub(channel, callOptions);
        }
      };
    return VirtualClockServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static VirtualClockServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<VirtualClockServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<VirtualClockServiceFutureStub>() {
        @java.lang.Override
        public VirtualClockServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new VirtualClockServiceFutureStub(channel, callOptions);
        }
      };
    return VirtualClockServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * The server's clock. It starts at 1970-01-01T00:00:00Z and never goes back.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Moves the clock forward, or leaves it where it is.
     * Answers once everything that is due at the new time has been swept and
     * published to every watcher, with a watermark at the new time: a test that reads
     * its watch up to that watermark has seen all events. A time before now, a negative
     * duration or one past the year 9999: INVALID_ARGUMENT. Calls apply one after the
     * other. Idempotent with `to`.
     * </pre>
     */
    default void advance(dev.timecached.testing.v1.AdvanceRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.testing.v1.AdvanceResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getAdvanceMethod(), responseObserver);
    }

    /**
     * <pre>
     * Reads the clock. Idempotent.
     * </pre>
     */
    default void now(dev.timecached.testing.v1.NowRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.testing.v1.NowResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getNowMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service VirtualClockService.
   * <pre>
   * The server's clock. It starts at 1970-01-01T00:00:00Z and never goes back.
   * </pre>
   */
  public static abstract class VirtualClockServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return VirtualClockServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service VirtualClockService.
   * <pre>
   * The server's clock. It starts at 1970-01-01T00:00:00Z and never goes back.
   * </pre>
   */
  public static final class VirtualClockServiceStub
      extends io.grpc.stub.AbstractAsyncStub<VirtualClockServiceStub> {
    private VirtualClockServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected VirtualClockServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new VirtualClockServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Moves the clock forward, or leaves it where it is.
     * Answers once everything that is due at the new time has been swept and
     * published to every watcher, with a watermark at the new time: a test that reads
     * its watch up to that watermark has seen all events. A time before now, a negative
     * duration or one past the year 9999: INVALID_ARGUMENT. Calls apply one after the
     * other. Idempotent with `to`.
     * </pre>
     */
    public void advance(dev.timecached.testing.v1.AdvanceRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.testing.v1.AdvanceResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getAdvanceMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Reads the clock. Idempotent.
     * </pre>
     */
    public void now(dev.timecached.testing.v1.NowRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.testing.v1.NowResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getNowMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service VirtualClockService.
   * <pre>
   * The server's clock. It starts at 1970-01-01T00:00:00Z and never goes back.
   * </pre>
   */
  public static final class VirtualClockServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<VirtualClockServiceBlockingV2Stub> {
    private VirtualClockServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected VirtualClockServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new VirtualClockServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Moves the clock forward, or leaves it where it is.
     * Answers once everything that is due at the new time has been swept and
     * published to every watcher, with a watermark at the new time: a test that reads
     * its watch up to that watermark has seen all events. A time before now, a negative
     * duration or one past the year 9999: INVALID_ARGUMENT. Calls apply one after the
     * other. Idempotent with `to`.
     * </pre>
     */
    public dev.timecached.testing.v1.AdvanceResponse advance(dev.timecached.testing.v1.AdvanceRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getAdvanceMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads the clock. Idempotent.
     * </pre>
     */
    public dev.timecached.testing.v1.NowResponse now(dev.timecached.testing.v1.NowRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getNowMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service VirtualClockService.
   * <pre>
   * The server's clock. It starts at 1970-01-01T00:00:00Z and never goes back.
   * </pre>
   */
  public static final class VirtualClockServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<VirtualClockServiceBlockingStub> {
    private VirtualClockServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected VirtualClockServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new VirtualClockServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Moves the clock forward, or leaves it where it is.
     * Answers once everything that is due at the new time has been swept and
     * published to every watcher, with a watermark at the new time: a test that reads
     * its watch up to that watermark has seen all events. A time before now, a negative
     * duration or one past the year 9999: INVALID_ARGUMENT. Calls apply one after the
     * other. Idempotent with `to`.
     * </pre>
     */
    public dev.timecached.testing.v1.AdvanceResponse advance(dev.timecached.testing.v1.AdvanceRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getAdvanceMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads the clock. Idempotent.
     * </pre>
     */
    public dev.timecached.testing.v1.NowResponse now(dev.timecached.testing.v1.NowRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getNowMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service VirtualClockService.
   * <pre>
   * The server's clock. It starts at 1970-01-01T00:00:00Z and never goes back.
   * </pre>
   */
  public static final class VirtualClockServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<VirtualClockServiceFutureStub> {
    private VirtualClockServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected VirtualClockServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new VirtualClockServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Moves the clock forward, or leaves it where it is.
     * Answers once everything that is due at the new time has been swept and
     * published to every watcher, with a watermark at the new time: a test that reads
     * its watch up to that watermark has seen all events. A time before now, a negative
     * duration or one past the year 9999: INVALID_ARGUMENT. Calls apply one after the
     * other. Idempotent with `to`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.testing.v1.AdvanceResponse> advance(
        dev.timecached.testing.v1.AdvanceRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getAdvanceMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Reads the clock. Idempotent.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.testing.v1.NowResponse> now(
        dev.timecached.testing.v1.NowRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getNowMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_ADVANCE = 0;
  private static final int METHODID_NOW = 1;

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
        case METHODID_ADVANCE:
          serviceImpl.advance((dev.timecached.testing.v1.AdvanceRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.testing.v1.AdvanceResponse>) responseObserver);
          break;
        case METHODID_NOW:
          serviceImpl.now((dev.timecached.testing.v1.NowRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.testing.v1.NowResponse>) responseObserver);
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
          getAdvanceMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.testing.v1.AdvanceRequest,
              dev.timecached.testing.v1.AdvanceResponse>(
                service, METHODID_ADVANCE)))
        .addMethod(
          getNowMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.testing.v1.NowRequest,
              dev.timecached.testing.v1.NowResponse>(
                service, METHODID_NOW)))
        .build();
  }

  private static abstract class VirtualClockServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    VirtualClockServiceBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.timecached.testing.v1.VirtualClockProto.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("VirtualClockService");
    }
  }

  private static final class VirtualClockServiceFileDescriptorSupplier
      extends VirtualClockServiceBaseDescriptorSupplier {
    VirtualClockServiceFileDescriptorSupplier() {}
  }

  private static final class VirtualClockServiceMethodDescriptorSupplier
      extends VirtualClockServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    VirtualClockServiceMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (VirtualClockServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new VirtualClockServiceFileDescriptorSupplier())
              .addMethod(getAdvanceMethod())
              .addMethod(getNowMethod())
              .build();
        }
      }
    }
    return result;
  }
}
