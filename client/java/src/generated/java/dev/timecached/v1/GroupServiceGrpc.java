package dev.timecached.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * Administration of consumer groups. Errors are as in data.proto.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class GroupServiceGrpc {

  private GroupServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "timecache.v1.GroupService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.CreateGroupRequest,
      dev.timecached.v1.CreateGroupResponse> getCreateGroupMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CreateGroup",
      requestType = dev.timecached.v1.CreateGroupRequest.class,
      responseType = dev.timecached.v1.CreateGroupResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.CreateGroupRequest,
      dev.timecached.v1.CreateGroupResponse> getCreateGroupMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.CreateGroupRequest, dev.timecached.v1.CreateGroupResponse> getCreateGroupMethod;
    if ((getCreateGroupMethod = GroupServiceGrpc.getCreateGroupMethod) == null) {
      synchronized (GroupServiceGrpc.class) {
        if ((getCreateGroupMethod = GroupServiceGrpc.getCreateGroupMethod) == null) {
          GroupServiceGrpc.getCreateGroupMethod = getCreateGroupMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.CreateGroupRequest, dev.timecached.v1.CreateGroupResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CreateGroup"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.CreateGroupRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.CreateGroupResponse.getDefaultInstance()))
              .setSchemaDescriptor(new GroupServiceMethodDescriptorSupplier("CreateGroup"))
              .build();
        }
      }
    }
    return getCreateGroupMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.GetGroupRequest,
      dev.timecached.v1.GetGroupResponse> getGetGroupMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetGroup",
      requestType = dev.timecached.v1.GetGroupRequest.class,
      responseType = dev.timecached.v1.GetGroupResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.GetGroupRequest,
      dev.timecached.v1.GetGroupResponse> getGetGroupMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.GetGroupRequest, dev.timecached.v1.GetGroupResponse> getGetGroupMethod;
    if ((getGetGroupMethod = GroupServiceGrpc.getGetGroupMethod) == null) {
      synchronized (GroupServiceGrpc.class) {
        if ((getGetGroupMethod = GroupServiceGrpc.getGetGroupMethod) == null) {
          GroupServiceGrpc.getGetGroupMethod = getGetGroupMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.GetGroupRequest, dev.timecached.v1.GetGroupResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetGroup"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.GetGroupRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.GetGroupResponse.getDefaultInstance()))
              .setSchemaDescriptor(new GroupServiceMethodDescriptorSupplier("GetGroup"))
              .build();
        }
      }
    }
    return getGetGroupMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.ListGroupsRequest,
      dev.timecached.v1.ListGroupsResponse> getListGroupsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListGroups",
      requestType = dev.timecached.v1.ListGroupsRequest.class,
      responseType = dev.timecached.v1.ListGroupsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.ListGroupsRequest,
      dev.timecached.v1.ListGroupsResponse> getListGroupsMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.ListGroupsRequest, dev.timecached.v1.ListGroupsResponse> getListGroupsMethod;
    if ((getListGroupsMethod = GroupServiceGrpc.getListGroupsMethod) == null) {
      synchronized (GroupServiceGrpc.class) {
        if ((getListGroupsMethod = GroupServiceGrpc.getListGroupsMethod) == null) {
          GroupServiceGrpc.getListGroupsMethod = getListGroupsMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.ListGroupsRequest, dev.timecached.v1.ListGroupsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListGroups"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.ListGroupsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.ListGroupsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new GroupServiceMethodDescriptorSupplier("ListGroups"))
              .build();
        }
      }
    }
    return getListGroupsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.UpdateGroupRequest,
      dev.timecached.v1.UpdateGroupResponse> getUpdateGroupMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "UpdateGroup",
      requestType = dev.timecached.v1.UpdateGroupRequest.class,
      responseType = dev.timecached.v1.UpdateGroupResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.UpdateGroupRequest,
      dev.timecached.v1.UpdateGroupResponse> getUpdateGroupMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.UpdateGroupRequest, dev.timecached.v1.UpdateGroupResponse> getUpdateGroupMethod;
    if ((getUpdateGroupMethod = GroupServiceGrpc.getUpdateGroupMethod) == null) {
      synchronized (GroupServiceGrpc.class) {
        if ((getUpdateGroupMethod = GroupServiceGrpc.getUpdateGroupMethod) == null) {
          GroupServiceGrpc.getUpdateGroupMethod = getUpdateGroupMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.UpdateGroupRequest, dev.timecached.v1.UpdateGroupResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "UpdateGroup"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.UpdateGroupRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.UpdateGroupResponse.getDefaultInstance()))
              .setSchemaDescriptor(new GroupServiceMethodDescriptorSupplier("UpdateGroup"))
              .build();
        }
      }
    }
    return getUpdateGroupMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.DeleteGroupRequest,
      dev.timecached.v1.DeleteGroupResponse> getDeleteGroupMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DeleteGroup",
      requestType = dev.timecached.v1.DeleteGroupRequest.class,
      responseType = dev.timecached.v1.DeleteGroupResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.DeleteGroupRequest,
      dev.timecached.v1.DeleteGroupResponse> getDeleteGroupMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.DeleteGroupRequest, dev.timecached.v1.DeleteGroupResponse> getDeleteGroupMethod;
    if ((getDeleteGroupMethod = GroupServiceGrpc.getDeleteGroupMethod) == null) {
      synchronized (GroupServiceGrpc.class) {
        if ((getDeleteGroupMethod = GroupServiceGrpc.getDeleteGroupMethod) == null) {
          GroupServiceGrpc.getDeleteGroupMethod = getDeleteGroupMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.DeleteGroupRequest, dev.timecached.v1.DeleteGroupResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DeleteGroup"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.DeleteGroupRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.DeleteGroupResponse.getDefaultInstance()))
              .setSchemaDescriptor(new GroupServiceMethodDescriptorSupplier("DeleteGroup"))
              .build();
        }
      }
    }
    return getDeleteGroupMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static GroupServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<GroupServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<GroupServiceStub>() {
        @java.lang.Override
        public GroupServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new GroupServiceStub(channel, callOptions);
        }
      };
    return GroupServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static GroupServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<GroupServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<GroupServiceBlockingV2Stub>() {
        @java.lang.Override
        public GroupServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new GroupServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return GroupServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static GroupServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<GroupServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<GroupServiceBlockingStub>() {
        @java.lang.Override
        public GroupServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new GroupServiceBlockingStub(channel, callOptions);
        }
      };
    return GroupServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static GroupServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<GroupServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<GroupServiceFutureStub>() {
        @java.lang.Override
        public GroupServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new GroupServiceFutureStub(channel, callOptions);
        }
      };
    return GroupServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * Administration of consumer groups. Errors are as in data.proto.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Creates a consumer group of a namespace. Unset options take their defaults.
     * A group of that name exists: ALREADY_EXISTS (reason GROUP_EXISTS). More than 64
     * in the namespace: RESOURCE_EXHAUSTED (reason MAX_GROUPS). Not idempotent: a retry
     * may fail because the first attempt succeeded.
     * </pre>
     */
    default void createGroup(dev.timecached.v1.CreateGroupRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.CreateGroupResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateGroupMethod(), responseObserver);
    }

    /**
     * <pre>
     * Describes a group: the options in force, and statistics if asked for. No such
     * group: NOT_FOUND (reason GROUP_NOT_FOUND). Idempotent.
     * </pre>
     */
    default void getGroup(dev.timecached.v1.GetGroupRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.GetGroupResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetGroupMethod(), responseObserver);
    }

    /**
     * <pre>
     * Describes the consumer groups of a namespace, ordered by name, in pages.
     * Idempotent.
     * </pre>
     */
    default void listGroups(dev.timecached.v1.ListGroupsRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.ListGroupsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListGroupsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Changes a group's options while it is in use. Events that a member holds keep
     * their time-out. No such group: NOT_FOUND (reason GROUP_NOT_FOUND). Idempotent.
     * </pre>
     */
    default void updateGroup(dev.timecached.v1.UpdateGroupRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.UpdateGroupResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getUpdateGroupMethod(), responseObserver);
    }

    /**
     * <pre>
     * Deletes a group with all events that it has not settled. Its members' streams end
     * with NOT_FOUND (reason GROUP_NOT_FOUND); a retry gets the same error.
     * </pre>
     */
    default void deleteGroup(dev.timecached.v1.DeleteGroupRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.DeleteGroupResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDeleteGroupMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service GroupService.
   * <pre>
   * Administration of consumer groups. Errors are as in data.proto.
   * </pre>
   */
  public static abstract class GroupServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return GroupServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service GroupService.
   * <pre>
   * Administration of consumer groups. Errors are as in data.proto.
   * </pre>
   */
  public static final class GroupServiceStub
      extends io.grpc.stub.AbstractAsyncStub<GroupServiceStub> {
    private GroupServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected GroupServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new GroupServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a consumer group of a namespace. Unset options take their defaults.
     * A group of that name exists: ALREADY_EXISTS (reason GROUP_EXISTS). More than 64
     * in the namespace: RESOURCE_EXHAUSTED (reason MAX_GROUPS). Not idempotent: a retry
     * may fail because the first attempt succeeded.
     * </pre>
     */
    public void createGroup(dev.timecached.v1.CreateGroupRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.CreateGroupResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateGroupMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Describes a group: the options in force, and statistics if asked for. No such
     * group: NOT_FOUND (reason GROUP_NOT_FOUND). Idempotent.
     * </pre>
     */
    public void getGroup(dev.timecached.v1.GetGroupRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.GetGroupResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetGroupMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Describes the consumer groups of a namespace, ordered by name, in pages.
     * Idempotent.
     * </pre>
     */
    public void listGroups(dev.timecached.v1.ListGroupsRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.ListGroupsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListGroupsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Changes a group's options while it is in use. Events that a member holds keep
     * their time-out. No such group: NOT_FOUND (reason GROUP_NOT_FOUND). Idempotent.
     * </pre>
     */
    public void updateGroup(dev.timecached.v1.UpdateGroupRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.UpdateGroupResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getUpdateGroupMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Deletes a group with all events that it has not settled. Its members' streams end
     * with NOT_FOUND (reason GROUP_NOT_FOUND); a retry gets the same error.
     * </pre>
     */
    public void deleteGroup(dev.timecached.v1.DeleteGroupRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.DeleteGroupResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDeleteGroupMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service GroupService.
   * <pre>
   * Administration of consumer groups. Errors are as in data.proto.
   * </pre>
   */
  public static final class GroupServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<GroupServiceBlockingV2Stub> {
    private GroupServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected GroupServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new GroupServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a consumer group of a namespace. Unset options take their defaults.
     * A group of that name exists: ALREADY_EXISTS (reason GROUP_EXISTS). More than 64
     * in the namespace: RESOURCE_EXHAUSTED (reason MAX_GROUPS). Not idempotent: a retry
     * may fail because the first attempt succeeded.
     * </pre>
     */
    public dev.timecached.v1.CreateGroupResponse createGroup(dev.timecached.v1.CreateGroupRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCreateGroupMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Describes a group: the options in force, and statistics if asked for. No such
     * group: NOT_FOUND (reason GROUP_NOT_FOUND). Idempotent.
     * </pre>
     */
    public dev.timecached.v1.GetGroupResponse getGroup(dev.timecached.v1.GetGroupRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetGroupMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Describes the consumer groups of a namespace, ordered by name, in pages.
     * Idempotent.
     * </pre>
     */
    public dev.timecached.v1.ListGroupsResponse listGroups(dev.timecached.v1.ListGroupsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListGroupsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Changes a group's options while it is in use. Events that a member holds keep
     * their time-out. No such group: NOT_FOUND (reason GROUP_NOT_FOUND). Idempotent.
     * </pre>
     */
    public dev.timecached.v1.UpdateGroupResponse updateGroup(dev.timecached.v1.UpdateGroupRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getUpdateGroupMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes a group with all events that it has not settled. Its members' streams end
     * with NOT_FOUND (reason GROUP_NOT_FOUND); a retry gets the same error.
     * </pre>
     */
    public dev.timecached.v1.DeleteGroupResponse deleteGroup(dev.timecached.v1.DeleteGroupRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDeleteGroupMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service GroupService.
   * <pre>
   * Administration of consumer groups. Errors are as in data.proto.
   * </pre>
   */
  public static final class GroupServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<GroupServiceBlockingStub> {
    private GroupServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected GroupServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new GroupServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a consumer group of a namespace. Unset options take their defaults.
     * A group of that name exists: ALREADY_EXISTS (reason GROUP_EXISTS). More than 64
     * in the namespace: RESOURCE_EXHAUSTED (reason MAX_GROUPS). Not idempotent: a retry
     * may fail because the first attempt succeeded.
     * </pre>
     */
    public dev.timecached.v1.CreateGroupResponse createGroup(dev.timecached.v1.CreateGroupRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateGroupMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Describes a group: the options in force, and statistics if asked for. No such
     * group: NOT_FOUND (reason GROUP_NOT_FOUND). Idempotent.
     * </pre>
     */
    public dev.timecached.v1.GetGroupResponse getGroup(dev.timecached.v1.GetGroupRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetGroupMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Describes the consumer groups of a namespace, ordered by name, in pages.
     * Idempotent.
     * </pre>
     */
    public dev.timecached.v1.ListGroupsResponse listGroups(dev.timecached.v1.ListGroupsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListGroupsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Changes a group's options while it is in use. Events that a member holds keep
     * their time-out. No such group: NOT_FOUND (reason GROUP_NOT_FOUND). Idempotent.
     * </pre>
     */
    public dev.timecached.v1.UpdateGroupResponse updateGroup(dev.timecached.v1.UpdateGroupRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getUpdateGroupMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes a group with all events that it has not settled. Its members' streams end
     * with NOT_FOUND (reason GROUP_NOT_FOUND); a retry gets the same error.
     * </pre>
     */
    public dev.timecached.v1.DeleteGroupResponse deleteGroup(dev.timecached.v1.DeleteGroupRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDeleteGroupMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service GroupService.
   * <pre>
   * Administration of consumer groups. Errors are as in data.proto.
   * </pre>
   */
  public static final class GroupServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<GroupServiceFutureStub> {
    private GroupServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected GroupServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new GroupServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a consumer group of a namespace. Unset options take their defaults.
     * A group of that name exists: ALREADY_EXISTS (reason GROUP_EXISTS). More than 64
     * in the namespace: RESOURCE_EXHAUSTED (reason MAX_GROUPS). Not idempotent: a retry
     * may fail because the first attempt succeeded.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.CreateGroupResponse> createGroup(
        dev.timecached.v1.CreateGroupRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateGroupMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Describes a group: the options in force, and statistics if asked for. No such
     * group: NOT_FOUND (reason GROUP_NOT_FOUND). Idempotent.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.GetGroupResponse> getGroup(
        dev.timecached.v1.GetGroupRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetGroupMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Describes the consumer groups of a namespace, ordered by name, in pages.
     * Idempotent.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.ListGroupsResponse> listGroups(
        dev.timecached.v1.ListGroupsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListGroupsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Changes a group's options while it is in use. Events that a member holds keep
     * their time-out. No such group: NOT_FOUND (reason GROUP_NOT_FOUND). Idempotent.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.UpdateGroupResponse> updateGroup(
        dev.timecached.v1.UpdateGroupRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getUpdateGroupMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Deletes a group with all events that it has not settled. Its members' streams end
     * with NOT_FOUND (reason GROUP_NOT_FOUND); a retry gets the same error.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.DeleteGroupResponse> deleteGroup(
        dev.timecached.v1.DeleteGroupRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDeleteGroupMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_CREATE_GROUP = 0;
  private static final int METHODID_GET_GROUP = 1;
  private static final int METHODID_LIST_GROUPS = 2;
  private static final int METHODID_UPDATE_GROUP = 3;
  private static final int METHODID_DELETE_GROUP = 4;

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
        case METHODID_CREATE_GROUP:
          serviceImpl.createGroup((dev.timecached.v1.CreateGroupRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.CreateGroupResponse>) responseObserver);
          break;
        case METHODID_GET_GROUP:
          serviceImpl.getGroup((dev.timecached.v1.GetGroupRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.GetGroupResponse>) responseObserver);
          break;
        case METHODID_LIST_GROUPS:
          serviceImpl.listGroups((dev.timecached.v1.ListGroupsRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.ListGroupsResponse>) responseObserver);
          break;
        case METHODID_UPDATE_GROUP:
          serviceImpl.updateGroup((dev.timecached.v1.UpdateGroupRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.UpdateGroupResponse>) responseObserver);
          break;
        case METHODID_DELETE_GROUP:
          serviceImpl.deleteGroup((dev.timecached.v1.DeleteGroupRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.DeleteGroupResponse>) responseObserver);
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
          getCreateGroupMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.CreateGroupRequest,
              dev.timecached.v1.CreateGroupResponse>(
                service, METHODID_CREATE_GROUP)))
        .addMethod(
          getGetGroupMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.GetGroupRequest,
              dev.timecached.v1.GetGroupResponse>(
                service, METHODID_GET_GROUP)))
        .addMethod(
          getListGroupsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.ListGroupsRequest,
              dev.timecached.v1.ListGroupsResponse>(
                service, METHODID_LIST_GROUPS)))
        .addMethod(
          getUpdateGroupMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.UpdateGroupRequest,
              dev.timecached.v1.UpdateGroupResponse>(
                service, METHODID_UPDATE_GROUP)))
        .addMethod(
          getDeleteGroupMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.DeleteGroupRequest,
              dev.timecached.v1.DeleteGroupResponse>(
                service, METHODID_DELETE_GROUP)))
        .build();
  }

  private static abstract class GroupServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    GroupServiceBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.timecached.v1.GroupsProto.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("GroupService");
    }
  }

  private static final class GroupServiceFileDescriptorSupplier
      extends GroupServiceBaseDescriptorSupplier {
    GroupServiceFileDescriptorSupplier() {}
  }

  private static final class GroupServiceMethodDescriptorSupplier
      extends GroupServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    GroupServiceMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (GroupServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new GroupServiceFileDescriptorSupplier())
              .addMethod(getCreateGroupMethod())
              .addMethod(getGetGroupMethod())
              .addMethod(getListGroupsMethod())
              .addMethod(getUpdateGroupMethod())
              .addMethod(getDeleteGroupMethod())
              .build();
        }
      }
    }
    return result;
  }
}
