package dev.timecached.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Administration of namespaces. Errors are as in data.proto.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class NamespaceServiceGrpc {

  private NamespaceServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "timecache.v1.NamespaceService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.CreateNamespaceRequest,
      dev.timecached.v1.CreateNamespaceResponse> getCreateNamespaceMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CreateNamespace",
      requestType = dev.timecached.v1.CreateNamespaceRequest.class,
      responseType = dev.timecached.v1.CreateNamespaceResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.CreateNamespaceRequest,
      dev.timecached.v1.CreateNamespaceResponse> getCreateNamespaceMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.CreateNamespaceRequest, dev.timecached.v1.CreateNamespaceResponse> getCreateNamespaceMethod;
    if ((getCreateNamespaceMethod = NamespaceServiceGrpc.getCreateNamespaceMethod) == null) {
      synchronized (NamespaceServiceGrpc.class) {
        if ((getCreateNamespaceMethod = NamespaceServiceGrpc.getCreateNamespaceMethod) == null) {
          NamespaceServiceGrpc.getCreateNamespaceMethod = getCreateNamespaceMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.CreateNamespaceRequest, dev.timecached.v1.CreateNamespaceResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CreateNamespace"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.CreateNamespaceRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.CreateNamespaceResponse.getDefaultInstance()))
              .setSchemaDescriptor(new NamespaceServiceMethodDescriptorSupplier("CreateNamespace"))
              .build();
        }
      }
    }
    return getCreateNamespaceMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.GetNamespaceRequest,
      dev.timecached.v1.GetNamespaceResponse> getGetNamespaceMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetNamespace",
      requestType = dev.timecached.v1.GetNamespaceRequest.class,
      responseType = dev.timecached.v1.GetNamespaceResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.GetNamespaceRequest,
      dev.timecached.v1.GetNamespaceResponse> getGetNamespaceMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.GetNamespaceRequest, dev.timecached.v1.GetNamespaceResponse> getGetNamespaceMethod;
    if ((getGetNamespaceMethod = NamespaceServiceGrpc.getGetNamespaceMethod) == null) {
      synchronized (NamespaceServiceGrpc.class) {
        if ((getGetNamespaceMethod = NamespaceServiceGrpc.getGetNamespaceMethod) == null) {
          NamespaceServiceGrpc.getGetNamespaceMethod = getGetNamespaceMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.GetNamespaceRequest, dev.timecached.v1.GetNamespaceResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetNamespace"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.GetNamespaceRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.GetNamespaceResponse.getDefaultInstance()))
              .setSchemaDescriptor(new NamespaceServiceMethodDescriptorSupplier("GetNamespace"))
              .build();
        }
      }
    }
    return getGetNamespaceMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.ListNamespacesRequest,
      dev.timecached.v1.ListNamespacesResponse> getListNamespacesMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListNamespaces",
      requestType = dev.timecached.v1.ListNamespacesRequest.class,
      responseType = dev.timecached.v1.ListNamespacesResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.ListNamespacesRequest,
      dev.timecached.v1.ListNamespacesResponse> getListNamespacesMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.ListNamespacesRequest, dev.timecached.v1.ListNamespacesResponse> getListNamespacesMethod;
    if ((getListNamespacesMethod = NamespaceServiceGrpc.getListNamespacesMethod) == null) {
      synchronized (NamespaceServiceGrpc.class) {
        if ((getListNamespacesMethod = NamespaceServiceGrpc.getListNamespacesMethod) == null) {
          NamespaceServiceGrpc.getListNamespacesMethod = getListNamespacesMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.ListNamespacesRequest, dev.timecached.v1.ListNamespacesResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListNamespaces"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.ListNamespacesRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.ListNamespacesResponse.getDefaultInstance()))
              .setSchemaDescriptor(new NamespaceServiceMethodDescriptorSupplier("ListNamespaces"))
              .build();
        }
      }
    }
    return getListNamespacesMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.UpdateNamespaceRequest,
      dev.timecached.v1.UpdateNamespaceResponse> getUpdateNamespaceMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "UpdateNamespace",
      requestType = dev.timecached.v1.UpdateNamespaceRequest.class,
      responseType = dev.timecached.v1.UpdateNamespaceResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.UpdateNamespaceRequest,
      dev.timecached.v1.UpdateNamespaceResponse> getUpdateNamespaceMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.UpdateNamespaceRequest, dev.timecached.v1.UpdateNamespaceResponse> getUpdateNamespaceMethod;
    if ((getUpdateNamespaceMethod = NamespaceServiceGrpc.getUpdateNamespaceMethod) == null) {
      synchronized (NamespaceServiceGrpc.class) {
        if ((getUpdateNamespaceMethod = NamespaceServiceGrpc.getUpdateNamespaceMethod) == null) {
          NamespaceServiceGrpc.getUpdateNamespaceMethod = getUpdateNamespaceMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.UpdateNamespaceRequest, dev.timecached.v1.UpdateNamespaceResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "UpdateNamespace"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.UpdateNamespaceRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.UpdateNamespaceResponse.getDefaultInstance()))
              .setSchemaDescriptor(new NamespaceServiceMethodDescriptorSupplier("UpdateNamespace"))
              .build();
        }
      }
    }
    return getUpdateNamespaceMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.DeleteNamespaceRequest,
      dev.timecached.v1.DeleteNamespaceResponse> getDeleteNamespaceMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DeleteNamespace",
      requestType = dev.timecached.v1.DeleteNamespaceRequest.class,
      responseType = dev.timecached.v1.DeleteNamespaceResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.DeleteNamespaceRequest,
      dev.timecached.v1.DeleteNamespaceResponse> getDeleteNamespaceMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.DeleteNamespaceRequest, dev.timecached.v1.DeleteNamespaceResponse> getDeleteNamespaceMethod;
    if ((getDeleteNamespaceMethod = NamespaceServiceGrpc.getDeleteNamespaceMethod) == null) {
      synchronized (NamespaceServiceGrpc.class) {
        if ((getDeleteNamespaceMethod = NamespaceServiceGrpc.getDeleteNamespaceMethod) == null) {
          NamespaceServiceGrpc.getDeleteNamespaceMethod = getDeleteNamespaceMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.DeleteNamespaceRequest, dev.timecached.v1.DeleteNamespaceResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DeleteNamespace"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.DeleteNamespaceRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.DeleteNamespaceResponse.getDefaultInstance()))
              .setSchemaDescriptor(new NamespaceServiceMethodDescriptorSupplier("DeleteNamespace"))
              .build();
        }
      }
    }
    return getDeleteNamespaceMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.RotateNamespaceRequest,
      dev.timecached.v1.RotateNamespaceResponse> getRotateNamespaceMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "RotateNamespace",
      requestType = dev.timecached.v1.RotateNamespaceRequest.class,
      responseType = dev.timecached.v1.RotateNamespaceResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.RotateNamespaceRequest,
      dev.timecached.v1.RotateNamespaceResponse> getRotateNamespaceMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.RotateNamespaceRequest, dev.timecached.v1.RotateNamespaceResponse> getRotateNamespaceMethod;
    if ((getRotateNamespaceMethod = NamespaceServiceGrpc.getRotateNamespaceMethod) == null) {
      synchronized (NamespaceServiceGrpc.class) {
        if ((getRotateNamespaceMethod = NamespaceServiceGrpc.getRotateNamespaceMethod) == null) {
          NamespaceServiceGrpc.getRotateNamespaceMethod = getRotateNamespaceMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.RotateNamespaceRequest, dev.timecached.v1.RotateNamespaceResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "RotateNamespace"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.RotateNamespaceRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.RotateNamespaceResponse.getDefaultInstance()))
              .setSchemaDescriptor(new NamespaceServiceMethodDescriptorSupplier("RotateNamespace"))
              .build();
        }
      }
    }
    return getRotateNamespaceMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static NamespaceServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<NamespaceServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<NamespaceServiceStub>() {
        @java.lang.Override
        public NamespaceServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new NamespaceServiceStub(channel, callOptions);
        }
      };
    return NamespaceServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static NamespaceServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<NamespaceServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<NamespaceServiceBlockingV2Stub>() {
        @java.lang.Override
        public NamespaceServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new NamespaceServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return NamespaceServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static NamespaceServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<NamespaceServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<NamespaceServiceBlockingStub>() {
        @java.lang.Override
        public NamespaceServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new NamespaceServiceBlockingStub(channel, callOptions);
        }
      };
    return NamespaceServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static NamespaceServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<NamespaceServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<NamespaceServiceFutureStub>() {
        @java.lang.Override
        public NamespaceServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new NamespaceServiceFutureStub(channel, callOptions);
        }
      };
    return NamespaceServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Administration of namespaces. Errors are as in data.proto.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Creates a namespace. Unset options take their defaults.
     * A namespace of that name exists: ALREADY_EXISTS (reason NAMESPACE_EXISTS). More
     * than the server's max_namespaces: RESOURCE_EXHAUSTED (reason MAX_NAMESPACES). Not
     * idempotent: a retry may fail because the first attempt succeeded.
     * </pre>
     */
    default void createNamespace(dev.timecached.v1.CreateNamespaceRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.CreateNamespaceResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateNamespaceMethod(), responseObserver);
    }

    /**
     * <pre>
     * Describes a namespace: the options in force, and statistics if asked for.
     * Idempotent.
     * </pre>
     */
    default void getNamespace(dev.timecached.v1.GetNamespaceRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.GetNamespaceResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetNamespaceMethod(), responseObserver);
    }

    /**
     * <pre>
     * Describes the namespaces, ordered by name, in pages: each page describes the
     * namespaces that exist when it is requested. Idempotent.
     * </pre>
     */
    default void listNamespaces(dev.timecached.v1.ListNamespacesRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.ListNamespacesResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListNamespacesMethod(), responseObserver);
    }

    /**
     * <pre>
     * Changes a namespace's options while it is in use.
     * The options take effect for later puts and touches. Existing entries keep their
     * deadlines. A limit below the current content makes the next put fail (or evict).
     * num_shards cannot change, nor durability between MEMORY and the others.
     * Idempotent.
     * </pre>
     */
    default void updateNamespace(dev.timecached.v1.UpdateNamespaceRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.UpdateNamespaceResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getUpdateNamespaceMethod(), responseObserver);
    }

    /**
     * <pre>
     * Deletes a namespace with everything in it. Its entries have no expiry events; its
     * watchers' streams end with NOT_FOUND. A retry gets NOT_FOUND.
     * </pre>
     */
    default void deleteNamespace(dev.timecached.v1.DeleteNamespaceRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.DeleteNamespaceResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDeleteNamespaceMethod(), responseObserver);
    }

    /**
     * <pre>
     * Kills the oldest bucket now (Storm's RotatingMap.rotate): its entries are gone
     * when the call returns, and are delivered to the watchers with the cause ROTATED.
     * A namespace without a live bucket does not change. Not idempotent.
     * </pre>
     */
    default void rotateNamespace(dev.timecached.v1.RotateNamespaceRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.RotateNamespaceResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRotateNamespaceMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service NamespaceService.
   * <pre>
   * Administration of namespaces. Errors are as in data.proto.
   * </pre>
   */
  public static abstract class NamespaceServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return NamespaceServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service NamespaceService.
   * <pre>
   * Administration of namespaces. Errors are as in data.proto.
   * </pre>
   */
  public static final class NamespaceServiceStub
      extends io.grpc.stub.AbstractAsyncStub<NamespaceServiceStub> {
    private NamespaceServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected NamespaceServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new NamespaceServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a namespace. Unset options take their defaults.
     * A namespace of that name exists: ALREADY_EXISTS (reason NAMESPACE_EXISTS). More
     * than the server's max_namespaces: RESOURCE_EXHAUSTED (reason MAX_NAMESPACES). Not
     * idempotent: a retry may fail because the first attempt succeeded.
     * </pre>
     */
    public void createNamespace(dev.timecached.v1.CreateNamespaceRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.CreateNamespaceResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateNamespaceMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Describes a namespace: the options in force, and statistics if asked for.
     * Idempotent.
     * </pre>
     */
    public void getNamespace(dev.timecached.v1.GetNamespaceRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.GetNamespaceResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetNamespaceMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Describes the namespaces, ordered by name, in pages: each page describes the
     * namespaces that exist when it is requested. Idempotent.
     * </pre>
     */
    public void listNamespaces(dev.timecached.v1.ListNamespacesRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.ListNamespacesResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListNamespacesMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Changes a namespace's options while it is in use.
     * The options take effect for later puts and touches. Existing entries keep their
     * deadlines. A limit below the current content makes the next put fail (or evict).
     * num_shards cannot change, nor durability between MEMORY and the others.
     * Idempotent.
     * </pre>
     */
    public void updateNamespace(dev.timecached.v1.UpdateNamespaceRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.UpdateNamespaceResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getUpdateNamespaceMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Deletes a namespace with everything in it. Its entries have no expiry events; its
     * watchers' streams end with NOT_FOUND. A retry gets NOT_FOUND.
     * </pre>
     */
    public void deleteNamespace(dev.timecached.v1.DeleteNamespaceRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.DeleteNamespaceResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDeleteNamespaceMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Kills the oldest bucket now (Storm's RotatingMap.rotate): its entries are gone
     * when the call returns, and are delivered to the watchers with the cause ROTATED.
     * A namespace without a live bucket does not change. Not idempotent.
     * </pre>
     */
    public void rotateNamespace(dev.timecached.v1.RotateNamespaceRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.RotateNamespaceResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRotateNamespaceMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service NamespaceService.
   * <pre>
   * Administration of namespaces. Errors are as in data.proto.
   * </pre>
   */
  public static final class NamespaceServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<NamespaceServiceBlockingV2Stub> {
    private NamespaceServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected NamespaceServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new NamespaceServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a namespace. Unset options take their defaults.
     * A namespace of that name exists: ALREADY_EXISTS (reason NAMESPACE_EXISTS). More
     * than the server's max_namespaces: RESOURCE_EXHAUSTED (reason MAX_NAMESPACES). Not
     * idempotent: a retry may fail because the first attempt succeeded.
     * </pre>
     */
    public dev.timecached.v1.CreateNamespaceResponse createNamespace(dev.timecached.v1.CreateNamespaceRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCreateNamespaceMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Describes a namespace: the options in force, and statistics if asked for.
     * Idempotent.
     * </pre>
     */
    public dev.timecached.v1.GetNamespaceResponse getNamespace(dev.timecached.v1.GetNamespaceRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetNamespaceMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Describes the namespaces, ordered by name, in pages: each page describes the
     * namespaces that exist when it is requested. Idempotent.
     * </pre>
     */
    public dev.timecached.v1.ListNamespacesResponse listNamespaces(dev.timecached.v1.ListNamespacesRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListNamespacesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Changes a namespace's options while it is in use.
     * The options take effect for later puts and touches. Existing entries keep their
     * deadlines. A limit below the current content makes the next put fail (or evict).
     * num_shards cannot change, nor durability between MEMORY and the others.
     * Idempotent.
     * </pre>
     */
    public dev.timecached.v1.UpdateNamespaceResponse updateNamespace(dev.timecached.v1.UpdateNamespaceRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getUpdateNamespaceMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes a namespace with everything in it. Its entries have no expiry events; its
     * watchers' streams end with NOT_FOUND. A retry gets NOT_FOUND.
     * </pre>
     */
    public dev.timecached.v1.DeleteNamespaceResponse deleteNamespace(dev.timecached.v1.DeleteNamespaceRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDeleteNamespaceMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Kills the oldest bucket now (Storm's RotatingMap.rotate): its entries are gone
     * when the call returns, and are delivered to the watchers with the cause ROTATED.
     * A namespace without a live bucket does not change. Not idempotent.
     * </pre>
     */
    public dev.timecached.v1.RotateNamespaceResponse rotateNamespace(dev.timecached.v1.RotateNamespaceRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRotateNamespaceMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service NamespaceService.
   * <pre>
   * Administration of namespaces. Errors are as in data.proto.
   * </pre>
   */
  public static final class NamespaceServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<NamespaceServiceBlockingStub> {
    private NamespaceServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected NamespaceServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new NamespaceServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a namespace. Unset options take their defaults.
     * A namespace of that name exists: ALREADY_EXISTS (reason NAMESPACE_EXISTS). More
     * than the server's max_namespaces: RESOURCE_EXHAUSTED (reason MAX_NAMESPACES). Not
     * idempotent: a retry may fail because the first attempt succeeded.
     * </pre>
     */
    public dev.timecached.v1.CreateNamespaceResponse createNamespace(dev.timecached.v1.CreateNamespaceRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateNamespaceMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Describes a namespace: the options in force, and statistics if asked for.
     * Idempotent.
     * </pre>
     */
    public dev.timecached.v1.GetNamespaceResponse getNamespace(dev.timecached.v1.GetNamespaceRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetNamespaceMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Describes the namespaces, ordered by name, in pages: each page describes the
     * namespaces that exist when it is requested. Idempotent.
     * </pre>
     */
    public dev.timecached.v1.ListNamespacesResponse listNamespaces(dev.timecached.v1.ListNamespacesRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListNamespacesMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Changes a namespace's options while it is in use.
     * The options take effect for later puts and touches. Existing entries keep their
     * deadlines. A limit below the current content makes the next put fail (or evict).
     * num_shards cannot change, nor durability between MEMORY and the others.
     * Idempotent.
     * </pre>
     */
    public dev.timecached.v1.UpdateNamespaceResponse updateNamespace(dev.timecached.v1.UpdateNamespaceRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getUpdateNamespaceMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes a namespace with everything in it. Its entries have no expiry events; its
     * watchers' streams end with NOT_FOUND. A retry gets NOT_FOUND.
     * </pre>
     */
    public dev.timecached.v1.DeleteNamespaceResponse deleteNamespace(dev.timecached.v1.DeleteNamespaceRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDeleteNamespaceMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Kills the oldest bucket now (Storm's RotatingMap.rotate): its entries are gone
     * when the call returns, and are delivered to the watchers with the cause ROTATED.
     * A namespace without a live bucket does not change. Not idempotent.
     * </pre>
     */
    public dev.timecached.v1.RotateNamespaceResponse rotateNamespace(dev.timecached.v1.RotateNamespaceRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRotateNamespaceMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service NamespaceService.
   * <pre>
   * Administration of namespaces. Errors are as in data.proto.
   * </pre>
   */
  public static final class NamespaceServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<NamespaceServiceFutureStub> {
    private NamespaceServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected NamespaceServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new NamespaceServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a namespace. Unset options take their defaults.
     * A namespace of that name exists: ALREADY_EXISTS (reason NAMESPACE_EXISTS). More
     * than the server's max_namespaces: RESOURCE_EXHAUSTED (reason MAX_NAMESPACES). Not
     * idempotent: a retry may fail because the first attempt succeeded.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.CreateNamespaceResponse> createNamespace(
        dev.timecached.v1.CreateNamespaceRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateNamespaceMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Describes a namespace: the options in force, and statistics if asked for.
     * Idempotent.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.GetNamespaceResponse> getNamespace(
        dev.timecached.v1.GetNamespaceRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetNamespaceMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Describes the namespaces, ordered by name, in pages: each page describes the
     * namespaces that exist when it is requested. Idempotent.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.ListNamespacesResponse> listNamespaces(
        dev.timecached.v1.ListNamespacesRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListNamespacesMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Changes a namespace's options while it is in use.
     * The options take effect for later puts and touches. Existing entries keep their
     * deadlines. A limit below the current content makes the next put fail (or evict).
     * num_shards cannot change, nor durability between MEMORY and the others.
     * Idempotent.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.UpdateNamespaceResponse> updateNamespace(
        dev.timecached.v1.UpdateNamespaceRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getUpdateNamespaceMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Deletes a namespace with everything in it. Its entries have no expiry events; its
     * watchers' streams end with NOT_FOUND. A retry gets NOT_FOUND.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.DeleteNamespaceResponse> deleteNamespace(
        dev.timecached.v1.DeleteNamespaceRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDeleteNamespaceMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Kills the oldest bucket now (Storm's RotatingMap.rotate): its entries are gone
     * when the call returns, and are delivered to the watchers with the cause ROTATED.
     * A namespace without a live bucket does not change. Not idempotent.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.RotateNamespaceResponse> rotateNamespace(
        dev.timecached.v1.RotateNamespaceRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRotateNamespaceMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_CREATE_NAMESPACE = 0;
  private static final int METHODID_GET_NAMESPACE = 1;
  private static final int METHODID_LIST_NAMESPACES = 2;
  private static final int METHODID_UPDATE_NAMESPACE = 3;
  private static final int METHODID_DELETE_NAMESPACE = 4;
  private static final int METHODID_ROTATE_NAMESPACE = 5;

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
        case METHODID_CREATE_NAMESPACE:
          serviceImpl.createNamespace((dev.timecached.v1.CreateNamespaceRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.CreateNamespaceResponse>) responseObserver);
          break;
        case METHODID_GET_NAMESPACE:
          serviceImpl.getNamespace((dev.timecached.v1.GetNamespaceRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.GetNamespaceResponse>) responseObserver);
          break;
        case METHODID_LIST_NAMESPACES:
          serviceImpl.listNamespaces((dev.timecached.v1.ListNamespacesRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.ListNamespacesResponse>) responseObserver);
          break;
        case METHODID_UPDATE_NAMESPACE:
          serviceImpl.updateNamespace((dev.timecached.v1.UpdateNamespaceRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.UpdateNamespaceResponse>) responseObserver);
          break;
        case METHODID_DELETE_NAMESPACE:
          serviceImpl.deleteNamespace((dev.timecached.v1.DeleteNamespaceRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.DeleteNamespaceResponse>) responseObserver);
          break;
        case METHODID_ROTATE_NAMESPACE:
          serviceImpl.rotateNamespace((dev.timecached.v1.RotateNamespaceRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.RotateNamespaceResponse>) responseObserver);
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
          getCreateNamespaceMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.CreateNamespaceRequest,
              dev.timecached.v1.CreateNamespaceResponse>(
                service, METHODID_CREATE_NAMESPACE)))
        .addMethod(
          getGetNamespaceMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.GetNamespaceRequest,
              dev.timecached.v1.GetNamespaceResponse>(
                service, METHODID_GET_NAMESPACE)))
        .addMethod(
          getListNamespacesMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.ListNamespacesRequest,
              dev.timecached.v1.ListNamespacesResponse>(
                service, METHODID_LIST_NAMESPACES)))
        .addMethod(
          getUpdateNamespaceMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.UpdateNamespaceRequest,
              dev.timecached.v1.UpdateNamespaceResponse>(
                service, METHODID_UPDATE_NAMESPACE)))
        .addMethod(
          getDeleteNamespaceMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.DeleteNamespaceRequest,
              dev.timecached.v1.DeleteNamespaceResponse>(
                service, METHODID_DELETE_NAMESPACE)))
        .addMethod(
          getRotateNamespaceMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.RotateNamespaceRequest,
              dev.timecached.v1.RotateNamespaceResponse>(
                service, METHODID_ROTATE_NAMESPACE)))
        .build();
  }

  private static abstract class NamespaceServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    NamespaceServiceBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.timecached.v1.NamespacesProto.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("NamespaceService");
    }
  }

  private static final class NamespaceServiceFileDescriptorSupplier
      extends NamespaceServiceBaseDescriptorSupplier {
    NamespaceServiceFileDescriptorSupplier() {}
  }

  private static final class NamespaceServiceMethodDescriptorSupplier
      extends NamespaceServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    NamespaceServiceMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (NamespaceServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new NamespaceServiceFileDescriptorSupplier())
              .addMethod(getCreateNamespaceMethod())
              .addMethod(getGetNamespaceMethod())
              .addMethod(getListNamespacesMethod())
              .addMethod(getUpdateNamespaceMethod())
              .addMethod(getDeleteNamespaceMethod())
              .addMethod(getRotateNamespaceMethod())
              .build();
        }
      }
    }
    return result;
  }
}
