package dev.timecached.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 * <pre>
 * The data of the namespaces. Every call except Scan and the watches is answered from
 * memory in O(1), whatever the number of entries or buckets.
 * </pre>
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class TimeCacheServiceGrpc {

  private TimeCacheServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "timecache.v1.TimeCacheService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.PutRequest,
      dev.timecached.v1.PutResponse> getPutMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Put",
      requestType = dev.timecached.v1.PutRequest.class,
      responseType = dev.timecached.v1.PutResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.PutRequest,
      dev.timecached.v1.PutResponse> getPutMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.PutRequest, dev.timecached.v1.PutResponse> getPutMethod;
    if ((getPutMethod = TimeCacheServiceGrpc.getPutMethod) == null) {
      synchronized (TimeCacheServiceGrpc.class) {
        if ((getPutMethod = TimeCacheServiceGrpc.getPutMethod) == null) {
          TimeCacheServiceGrpc.getPutMethod = getPutMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.PutRequest, dev.timecached.v1.PutResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Put"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.PutRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.PutResponse.getDefaultInstance()))
              .setSchemaDescriptor(new TimeCacheServiceMethodDescriptorSupplier("Put"))
              .build();
        }
      }
    }
    return getPutMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.GetRequest,
      dev.timecached.v1.GetResponse> getGetMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Get",
      requestType = dev.timecached.v1.GetRequest.class,
      responseType = dev.timecached.v1.GetResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.GetRequest,
      dev.timecached.v1.GetResponse> getGetMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.GetRequest, dev.timecached.v1.GetResponse> getGetMethod;
    if ((getGetMethod = TimeCacheServiceGrpc.getGetMethod) == null) {
      synchronized (TimeCacheServiceGrpc.class) {
        if ((getGetMethod = TimeCacheServiceGrpc.getGetMethod) == null) {
          TimeCacheServiceGrpc.getGetMethod = getGetMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.GetRequest, dev.timecached.v1.GetResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Get"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.GetRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.GetResponse.getDefaultInstance()))
              .setSchemaDescriptor(new TimeCacheServiceMethodDescriptorSupplier("Get"))
              .build();
        }
      }
    }
    return getGetMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.RemoveRequest,
      dev.timecached.v1.RemoveResponse> getRemoveMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Remove",
      requestType = dev.timecached.v1.RemoveRequest.class,
      responseType = dev.timecached.v1.RemoveResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.RemoveRequest,
      dev.timecached.v1.RemoveResponse> getRemoveMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.RemoveRequest, dev.timecached.v1.RemoveResponse> getRemoveMethod;
    if ((getRemoveMethod = TimeCacheServiceGrpc.getRemoveMethod) == null) {
      synchronized (TimeCacheServiceGrpc.class) {
        if ((getRemoveMethod = TimeCacheServiceGrpc.getRemoveMethod) == null) {
          TimeCacheServiceGrpc.getRemoveMethod = getRemoveMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.RemoveRequest, dev.timecached.v1.RemoveResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Remove"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.RemoveRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.RemoveResponse.getDefaultInstance()))
              .setSchemaDescriptor(new TimeCacheServiceMethodDescriptorSupplier("Remove"))
              .build();
        }
      }
    }
    return getRemoveMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.ContainsRequest,
      dev.timecached.v1.ContainsResponse> getContainsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Contains",
      requestType = dev.timecached.v1.ContainsRequest.class,
      responseType = dev.timecached.v1.ContainsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.ContainsRequest,
      dev.timecached.v1.ContainsResponse> getContainsMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.ContainsRequest, dev.timecached.v1.ContainsResponse> getContainsMethod;
    if ((getContainsMethod = TimeCacheServiceGrpc.getContainsMethod) == null) {
      synchronized (TimeCacheServiceGrpc.class) {
        if ((getContainsMethod = TimeCacheServiceGrpc.getContainsMethod) == null) {
          TimeCacheServiceGrpc.getContainsMethod = getContainsMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.ContainsRequest, dev.timecached.v1.ContainsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Contains"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.ContainsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.ContainsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new TimeCacheServiceMethodDescriptorSupplier("Contains"))
              .build();
        }
      }
    }
    return getContainsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.SizeRequest,
      dev.timecached.v1.SizeResponse> getSizeMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Size",
      requestType = dev.timecached.v1.SizeRequest.class,
      responseType = dev.timecached.v1.SizeResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.SizeRequest,
      dev.timecached.v1.SizeResponse> getSizeMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.SizeRequest, dev.timecached.v1.SizeResponse> getSizeMethod;
    if ((getSizeMethod = TimeCacheServiceGrpc.getSizeMethod) == null) {
      synchronized (TimeCacheServiceGrpc.class) {
        if ((getSizeMethod = TimeCacheServiceGrpc.getSizeMethod) == null) {
          TimeCacheServiceGrpc.getSizeMethod = getSizeMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.SizeRequest, dev.timecached.v1.SizeResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Size"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.SizeRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.SizeResponse.getDefaultInstance()))
              .setSchemaDescriptor(new TimeCacheServiceMethodDescriptorSupplier("Size"))
              .build();
        }
      }
    }
    return getSizeMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.TouchRequest,
      dev.timecached.v1.TouchResponse> getTouchMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Touch",
      requestType = dev.timecached.v1.TouchRequest.class,
      responseType = dev.timecached.v1.TouchResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.TouchRequest,
      dev.timecached.v1.TouchResponse> getTouchMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.TouchRequest, dev.timecached.v1.TouchResponse> getTouchMethod;
    if ((getTouchMethod = TimeCacheServiceGrpc.getTouchMethod) == null) {
      synchronized (TimeCacheServiceGrpc.class) {
        if ((getTouchMethod = TimeCacheServiceGrpc.getTouchMethod) == null) {
          TimeCacheServiceGrpc.getTouchMethod = getTouchMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.TouchRequest, dev.timecached.v1.TouchResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Touch"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.TouchRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.TouchResponse.getDefaultInstance()))
              .setSchemaDescriptor(new TimeCacheServiceMethodDescriptorSupplier("Touch"))
              .build();
        }
      }
    }
    return getTouchMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.AppendRequest,
      dev.timecached.v1.AppendResponse> getAppendMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Append",
      requestType = dev.timecached.v1.AppendRequest.class,
      responseType = dev.timecached.v1.AppendResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.AppendRequest,
      dev.timecached.v1.AppendResponse> getAppendMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.AppendRequest, dev.timecached.v1.AppendResponse> getAppendMethod;
    if ((getAppendMethod = TimeCacheServiceGrpc.getAppendMethod) == null) {
      synchronized (TimeCacheServiceGrpc.class) {
        if ((getAppendMethod = TimeCacheServiceGrpc.getAppendMethod) == null) {
          TimeCacheServiceGrpc.getAppendMethod = getAppendMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.AppendRequest, dev.timecached.v1.AppendResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Append"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.AppendRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.AppendResponse.getDefaultInstance()))
              .setSchemaDescriptor(new TimeCacheServiceMethodDescriptorSupplier("Append"))
              .build();
        }
      }
    }
    return getAppendMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.CombineRequest,
      dev.timecached.v1.CombineResponse> getCombineMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Combine",
      requestType = dev.timecached.v1.CombineRequest.class,
      responseType = dev.timecached.v1.CombineResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.CombineRequest,
      dev.timecached.v1.CombineResponse> getCombineMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.CombineRequest, dev.timecached.v1.CombineResponse> getCombineMethod;
    if ((getCombineMethod = TimeCacheServiceGrpc.getCombineMethod) == null) {
      synchronized (TimeCacheServiceGrpc.class) {
        if ((getCombineMethod = TimeCacheServiceGrpc.getCombineMethod) == null) {
          TimeCacheServiceGrpc.getCombineMethod = getCombineMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.CombineRequest, dev.timecached.v1.CombineResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Combine"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.CombineRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.CombineResponse.getDefaultInstance()))
              .setSchemaDescriptor(new TimeCacheServiceMethodDescriptorSupplier("Combine"))
              .build();
        }
      }
    }
    return getCombineMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.GatherRequest,
      dev.timecached.v1.GatherResponse> getGatherMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Gather",
      requestType = dev.timecached.v1.GatherRequest.class,
      responseType = dev.timecached.v1.GatherResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.GatherRequest,
      dev.timecached.v1.GatherResponse> getGatherMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.GatherRequest, dev.timecached.v1.GatherResponse> getGatherMethod;
    if ((getGatherMethod = TimeCacheServiceGrpc.getGatherMethod) == null) {
      synchronized (TimeCacheServiceGrpc.class) {
        if ((getGatherMethod = TimeCacheServiceGrpc.getGatherMethod) == null) {
          TimeCacheServiceGrpc.getGatherMethod = getGatherMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.GatherRequest, dev.timecached.v1.GatherResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Gather"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.GatherRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.GatherResponse.getDefaultInstance()))
              .setSchemaDescriptor(new TimeCacheServiceMethodDescriptorSupplier("Gather"))
              .build();
        }
      }
    }
    return getGatherMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.ExecuteRequest,
      dev.timecached.v1.ExecuteResponse> getExecuteMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Execute",
      requestType = dev.timecached.v1.ExecuteRequest.class,
      responseType = dev.timecached.v1.ExecuteResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.ExecuteRequest,
      dev.timecached.v1.ExecuteResponse> getExecuteMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.ExecuteRequest, dev.timecached.v1.ExecuteResponse> getExecuteMethod;
    if ((getExecuteMethod = TimeCacheServiceGrpc.getExecuteMethod) == null) {
      synchronized (TimeCacheServiceGrpc.class) {
        if ((getExecuteMethod = TimeCacheServiceGrpc.getExecuteMethod) == null) {
          TimeCacheServiceGrpc.getExecuteMethod = getExecuteMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.ExecuteRequest, dev.timecached.v1.ExecuteResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Execute"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.ExecuteRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.ExecuteResponse.getDefaultInstance()))
              .setSchemaDescriptor(new TimeCacheServiceMethodDescriptorSupplier("Execute"))
              .build();
        }
      }
    }
    return getExecuteMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.ExecuteRequest,
      dev.timecached.v1.ExecuteResponse> getPipelineMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Pipeline",
      requestType = dev.timecached.v1.ExecuteRequest.class,
      responseType = dev.timecached.v1.ExecuteResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.BIDI_STREAMING)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.ExecuteRequest,
      dev.timecached.v1.ExecuteResponse> getPipelineMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.ExecuteRequest, dev.timecached.v1.ExecuteResponse> getPipelineMethod;
    if ((getPipelineMethod = TimeCacheServiceGrpc.getPipelineMethod) == null) {
      synchronized (TimeCacheServiceGrpc.class) {
        if ((getPipelineMethod = TimeCacheServiceGrpc.getPipelineMethod) == null) {
          TimeCacheServiceGrpc.getPipelineMethod = getPipelineMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.ExecuteRequest, dev.timecached.v1.ExecuteResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.BIDI_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Pipeline"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.ExecuteRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.ExecuteResponse.getDefaultInstance()))
              .setSchemaDescriptor(new TimeCacheServiceMethodDescriptorSupplier("Pipeline"))
              .build();
        }
      }
    }
    return getPipelineMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.ScanRequest,
      dev.timecached.v1.ScanResponse> getScanMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Scan",
      requestType = dev.timecached.v1.ScanRequest.class,
      responseType = dev.timecached.v1.ScanResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.ScanRequest,
      dev.timecached.v1.ScanResponse> getScanMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.ScanRequest, dev.timecached.v1.ScanResponse> getScanMethod;
    if ((getScanMethod = TimeCacheServiceGrpc.getScanMethod) == null) {
      synchronized (TimeCacheServiceGrpc.class) {
        if ((getScanMethod = TimeCacheServiceGrpc.getScanMethod) == null) {
          TimeCacheServiceGrpc.getScanMethod = getScanMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.ScanRequest, dev.timecached.v1.ScanResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Scan"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.ScanRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.ScanResponse.getDefaultInstance()))
              .setSchemaDescriptor(new TimeCacheServiceMethodDescriptorSupplier("Scan"))
              .build();
        }
      }
    }
    return getScanMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.WatchExpiredRequest,
      dev.timecached.v1.WatchExpiredResponse> getWatchExpiredMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "WatchExpired",
      requestType = dev.timecached.v1.WatchExpiredRequest.class,
      responseType = dev.timecached.v1.WatchExpiredResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.WatchExpiredRequest,
      dev.timecached.v1.WatchExpiredResponse> getWatchExpiredMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.WatchExpiredRequest, dev.timecached.v1.WatchExpiredResponse> getWatchExpiredMethod;
    if ((getWatchExpiredMethod = TimeCacheServiceGrpc.getWatchExpiredMethod) == null) {
      synchronized (TimeCacheServiceGrpc.class) {
        if ((getWatchExpiredMethod = TimeCacheServiceGrpc.getWatchExpiredMethod) == null) {
          TimeCacheServiceGrpc.getWatchExpiredMethod = getWatchExpiredMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.WatchExpiredRequest, dev.timecached.v1.WatchExpiredResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "WatchExpired"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.WatchExpiredRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.WatchExpiredResponse.getDefaultInstance()))
              .setSchemaDescriptor(new TimeCacheServiceMethodDescriptorSupplier("WatchExpired"))
              .build();
        }
      }
    }
    return getWatchExpiredMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.ConsumeExpiredRequest,
      dev.timecached.v1.ConsumeExpiredResponse> getConsumeExpiredMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ConsumeExpired",
      requestType = dev.timecached.v1.ConsumeExpiredRequest.class,
      responseType = dev.timecached.v1.ConsumeExpiredResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.ConsumeExpiredRequest,
      dev.timecached.v1.ConsumeExpiredResponse> getConsumeExpiredMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.ConsumeExpiredRequest, dev.timecached.v1.ConsumeExpiredResponse> getConsumeExpiredMethod;
    if ((getConsumeExpiredMethod = TimeCacheServiceGrpc.getConsumeExpiredMethod) == null) {
      synchronized (TimeCacheServiceGrpc.class) {
        if ((getConsumeExpiredMethod = TimeCacheServiceGrpc.getConsumeExpiredMethod) == null) {
          TimeCacheServiceGrpc.getConsumeExpiredMethod = getConsumeExpiredMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.ConsumeExpiredRequest, dev.timecached.v1.ConsumeExpiredResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ConsumeExpired"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.ConsumeExpiredRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.ConsumeExpiredResponse.getDefaultInstance()))
              .setSchemaDescriptor(new TimeCacheServiceMethodDescriptorSupplier("ConsumeExpired"))
              .build();
        }
      }
    }
    return getConsumeExpiredMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.WatchExpiringRequest,
      dev.timecached.v1.WatchExpiringResponse> getWatchExpiringMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "WatchExpiring",
      requestType = dev.timecached.v1.WatchExpiringRequest.class,
      responseType = dev.timecached.v1.WatchExpiringResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.WatchExpiringRequest,
      dev.timecached.v1.WatchExpiringResponse> getWatchExpiringMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.WatchExpiringRequest, dev.timecached.v1.WatchExpiringResponse> getWatchExpiringMethod;
    if ((getWatchExpiringMethod = TimeCacheServiceGrpc.getWatchExpiringMethod) == null) {
      synchronized (TimeCacheServiceGrpc.class) {
        if ((getWatchExpiringMethod = TimeCacheServiceGrpc.getWatchExpiringMethod) == null) {
          TimeCacheServiceGrpc.getWatchExpiringMethod = getWatchExpiringMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.WatchExpiringRequest, dev.timecached.v1.WatchExpiringResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "WatchExpiring"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.WatchExpiringRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.WatchExpiringResponse.getDefaultInstance()))
              .setSchemaDescriptor(new TimeCacheServiceMethodDescriptorSupplier("WatchExpiring"))
              .build();
        }
      }
    }
    return getWatchExpiringMethod;
  }

  private static volatile io.grpc.MethodDescriptor<dev.timecached.v1.SettleExpiredRequest,
      dev.timecached.v1.SettleExpiredResponse> getSettleExpiredMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "SettleExpired",
      requestType = dev.timecached.v1.SettleExpiredRequest.class,
      responseType = dev.timecached.v1.SettleExpiredResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<dev.timecached.v1.SettleExpiredRequest,
      dev.timecached.v1.SettleExpiredResponse> getSettleExpiredMethod() {
    io.grpc.MethodDescriptor<dev.timecached.v1.SettleExpiredRequest, dev.timecached.v1.SettleExpiredResponse> getSettleExpiredMethod;
    if ((getSettleExpiredMethod = TimeCacheServiceGrpc.getSettleExpiredMethod) == null) {
      synchronized (TimeCacheServiceGrpc.class) {
        if ((getSettleExpiredMethod = TimeCacheServiceGrpc.getSettleExpiredMethod) == null) {
          TimeCacheServiceGrpc.getSettleExpiredMethod = getSettleExpiredMethod =
              io.grpc.MethodDescriptor.<dev.timecached.v1.SettleExpiredRequest, dev.timecached.v1.SettleExpiredResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "SettleExpired"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.SettleExpiredRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  dev.timecached.v1.SettleExpiredResponse.getDefaultInstance()))
              .setSchemaDescriptor(new TimeCacheServiceMethodDescriptorSupplier("SettleExpired"))
              .build();
        }
      }
    }
    return getSettleExpiredMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static TimeCacheServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<TimeCacheServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<TimeCacheServiceStub>() {
        @java.lang.Override
        public TimeCacheServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new TimeCacheServiceStub(channel, callOptions);
        }
      };
    return TimeCacheServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static TimeCacheServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<TimeCacheServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<TimeCacheServiceBlockingV2Stub>() {
        @java.lang.Override
        public TimeCacheServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new TimeCacheServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return TimeCacheServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static TimeCacheServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<TimeCacheServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<TimeCacheServiceBlockingStub>() {
        @java.lang.Override
        public TimeCacheServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new TimeCacheServiceBlockingStub(channel, callOptions);
        }
      };
    return TimeCacheServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static TimeCacheServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<TimeCacheServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<TimeCacheServiceFutureStub>() {
        @java.lang.Override
        public TimeCacheServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new TimeCacheServiceFutureStub(channel, callOptions);
        }
      };
    return TimeCacheServiceFutureStub.newStub(factory, channel);
  }

  /**
   * <pre>
   * The data of the namespaces. Every call except Scan and the watches is answered from
   * memory in O(1), whatever the number of entries or buckets.
   * </pre>
   */
  public interface AsyncService {

    /**
     * <pre>
     * Stores a value under a key and gives it a fresh time to live.
     * Success: the entry's new version. A condition that does not hold:
     * FAILED_PRECONDITION (reason KEY_EXISTS, KEY_NOT_FOUND or VERSION_MISMATCH), and
     * nothing is changed. A limit that would be exceeded: RESOURCE_EXHAUSTED with the
     * limit's name as reason, unless the namespace evicts. With `keep_deadline` an
     * existing entry keeps its time to live. Without a condition idempotent, except for
     * the version and the fresh time to live; with a condition a retry may fail because
     * the first attempt succeeded.
     * </pre>
     */
    default void put(dev.timecached.v1.PutRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.PutResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getPutMethod(), responseObserver);
    }

    /**
     * <pre>
     * Reads an entry.
     * Success: the entry. Miss: OK with no entry. A client that reads values of more
     * than 4 MiB must raise its gRPC's limit for received messages; otherwise gRPC ends
     * the call at the client, with RESOURCE_EXHAUSTED and no ErrorInfo. Does not renew
     * the time to live, unless the namespace is sliding or the request sets `touch`;
     * the version does not change even then. Idempotent.
     * </pre>
     */
    default void get(dev.timecached.v1.GetRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.GetResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetMethod(), responseObserver);
    }

    /**
     * <pre>
     * Removes an entry. A removed entry has no expiry event.
     * Success: whether the entry existed. Miss: OK with removed = false, or, with
     * `if_version`, FAILED_PRECONDITION (reason KEY_NOT_FOUND or VERSION_MISMATCH).
     * Idempotent without `if_version`.
     * </pre>
     */
    default void remove(dev.timecached.v1.RemoveRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.RemoveResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRemoveMethod(), responseObserver);
    }

    /**
     * <pre>
     * Reports whether an entry exists. Never renews the time to live. Idempotent.
     * </pre>
     */
    default void contains(dev.timecached.v1.ContainsRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.ContainsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getContainsMethod(), responseObserver);
    }

    /**
     * <pre>
     * Counts a namespace's live entries and their bytes. Exact: entries whose
     * bucket has died do not count, whether or not they have been swept.
     * Idempotent.
     * </pre>
     */
    default void size(dev.timecached.v1.SizeRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.SizeResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getSizeMethod(), responseObserver);
    }

    /**
     * <pre>
     * Gives an entry a fresh time to live without a new value.
     * Success: touched = true and the entry's version, which does not change. Miss: OK
     * with touched = false, or, with `if_version`, FAILED_PRECONDITION (reason
     * KEY_NOT_FOUND or VERSION_MISMATCH), and nothing is renewed. Idempotent.
     * </pre>
     */
    default void touch(dev.timecached.v1.TouchRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.TouchResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getTouchMethod(), responseObserver);
    }

    /**
     * <pre>
     * Appends bytes to the value of an entry, or creates the entry with them. The value
     * stays on the server.
     * Success: the value's new length and its new version. An existing entry keeps its
     * deadline, unless the request sets `touch`; a new entry gets a fresh time to live.
     * A condition that does not hold: FAILED_PRECONDITION, as in Put. A value that
     * would be larger than the namespace's max_value_bytes: FAILED_PRECONDITION
     * (VALUE_TOO_LARGE). A key that collects the parts of a Gather: FAILED_PRECONDITION
     * (VALUE_KIND_MISMATCH). After each of these errors nothing is changed. A limit
     * that would be exceeded: as in Put. Not idempotent: a retry appends again, unless
     * it has `if_version`, with which it may fail because the first attempt succeeded.
     * Costs O(bytes appended), whatever the value's length: a growing value is copied
     * once for each doubling of its length, and for each bucket that it moves to. A
     * value that has been appended to takes up to twice its length of memory; limits
     * count its length.
     * </pre>
     */
    default void append(dev.timecached.v1.AppendRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.AppendResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getAppendMethod(), responseObserver);
    }

    /**
     * <pre>
     * Adds a 64-bit number to the value of an entry, or xors it with one, atomically.
     * The value is a decimal number in ASCII, as a Put of "10" stores it: no sign but
     * "-", no leading zero, in the range of int64. A missing key counts as `initial`.
     * An existing entry keeps its deadline, unless the request sets `touch`; a new
     * entry gets a fresh time to live.
     * Success: the result, which is the new value; with `remove_if_zero` a result of 0
     * removes the entry instead, without an expiry event. A value that is no such
     * number: FAILED_PRECONDITION (NOT_A_NUMBER). A sum beyond 64 bits:
     * FAILED_PRECONDITION (NUMBER_OVERFLOW). An `if_version` that does not hold, and a
     * key that collects the parts of a Gather: as in Append. After each of these errors
     * nothing is changed. A limit that would be exceeded: as in Put.
     * Not idempotent: a retry combines again, unless it has `if_version`, with which it
     * may fail because the first attempt succeeded. A second xor with the same number
     * undoes the first. O(1).
     * </pre>
     */
    default void combine(dev.timecached.v1.CombineRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.CombineResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCombineMethod(), responseObserver);
    }

    /**
     * <pre>
     * Collects named parts under a key. The call that adds the last expected part gets
     * all of them and removes the key: exactly one call gets them. A key that is not
     * complete in time expires as any entry does, with the parts collected so far: see
     * ExpiredEvent.parts.
     * An existing entry keeps its deadline, unless the request sets `touch`; the first
     * part gets a fresh time to live.
     * Success: all parts, or how many have been collected. The same part with the same
     * value again is a success that changes nothing (`duplicate`); with another value:
     * ALREADY_EXISTS (PART_EXISTS). A request that expects other parts than the
     * collected ones do: FAILED_PRECONDITION (GATHER_MISMATCH). A key that has a value:
     * FAILED_PRECONDITION (VALUE_KIND_MISMATCH). Parts that together, with their names
     * and the expected names, would be larger than the namespace's max_value_bytes:
     * FAILED_PRECONDITION (VALUE_TOO_LARGE). After each of these errors nothing is
     * changed. A limit that would be exceeded: as in Put.
     * A retry is a duplicate as long as the key is incomplete. A retry of the part that
     * completed the key starts a new collection: a client that must not join twice
     * remembers the key for a while, or derives the key from what is joined once. Costs
     * O(1) for each collected part, whatever their sizes, and O(bytes of all parts)
     * where it completes the key. max_value_bytes bounds the response: see Get for
     * answers of more than 4 MiB.
     * </pre>
     */
    default void gather(dev.timecached.v1.GatherRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.GatherResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGatherMethod(), responseObserver);
    }

    /**
     * <pre>
     * Applies many operations on one namespace in one request.
     * Not a transaction: each operation succeeds or fails by itself, with its own
     * result, and operations of other calls may come between. The operations of one key
     * apply in the order of the request. The call fails as a whole, with nothing
     * applied, only if no operation can be applied: INVALID_ARGUMENT for a request that
     * is empty or too large, NOT_FOUND for its namespace.
     * Idempotent if all of its operations are. Costs one round trip, and three short
     * locks for each of the namespace's shards that it uses.
     * </pre>
     */
    default void execute(dev.timecached.v1.ExecuteRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.ExecuteResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getExecuteMethod(), responseObserver);
    }

    /**
     * <pre>
     * A stream of Execute requests, each answered by one response, in order.
     * Requests are applied one after the other: what a request writes, the next one
     * reads. A client may send requests without waiting for responses. The server stops
     * reading from a client for which 16 responses, or 8 MiB of them, wait: flow
     * control then stops the client, and nothing is lost.
     * A request that fails as a whole, as in Execute, ends the stream with that error:
     * the requests that were answered have been applied; this request and those after
     * it have not. When the server stops, it answers the requests that it has read and
     * ends the stream with UNAVAILABLE (reason DRAINING).
     * </pre>
     */
    default io.grpc.stub.StreamObserver<dev.timecached.v1.ExecuteRequest> pipeline(
        io.grpc.stub.StreamObserver<dev.timecached.v1.ExecuteResponse> responseObserver) {
      return io.grpc.stub.ServerCalls.asyncUnimplementedStreamingCall(getPipelineMethod(), responseObserver);
    }

    /**
     * <pre>
     * Streams the live entries whose key begins with a prefix, in no particular
     * order.
     * An entry that is live during the whole scan appears exactly once; one that is
     * put, removed or dies meanwhile appears at most once: also if the scan is continued
     * by other calls, each with the position of the last page that came. Pages hold at
     * most 1,000 entries and about 1 MiB. Writers are never blocked for longer than one
     * step of the scan. A client that does not read a page for limits.max_call_duration,
     * 1 min by default, gets DEADLINE_EXCEEDED; how long the scan takes in all does not
     * matter. Idempotent.
     * Cost: O(entries of the namespace), whatever the prefix: keys are hashed, not
     * sorted. 0.1 s of the server's CPU for a million entries. All scans of a server
     * share one thread, in turns of at most a millisecond. For a few keys that are known
     * by name, Execute is a thousand times cheaper.
     * </pre>
     */
    default void scan(dev.timecached.v1.ScanRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.ScanResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getScanMethod(), responseObserver);
    }

    /**
     * <pre>
     * Streams entries as they expire.
     * The first message of each namespace is sent at once: it confirms the watch and
     * says where it starts. From then on every entry that dies is delivered exactly
     * once, in order of death, never before its deadline. A message is sent at least
     * every `heartbeat_interval`, without events if there are none.
     * No event is silently dropped. Every message has a `resume_token`: a call with
     * that token continues after that message, for as long as the events are retained.
     * A watcher that reads too slowly, or resumes too late, never slows a writer or
     * another watcher: `lost` counts exactly the events that it missed, and the stream
     * continues; or, with `fail_on_loss`, the stream ends with OUT_OF_RANGE (reason
     * RESUME_POINT_TRIMMED, metadata `lost`). A token that the namespace's log has not
     * reached: OUT_OF_RANGE (RESUME_POINT_AHEAD). A token of another log, from before
     * the namespace's deletion, the server's restart (MEMORY), a power loss (ASYNC) or
     * the restore of a backup: FAILED_PRECONDITION (LOG_CHANGED); the number of events
     * lost is then unknown. Each of these errors has the metadata `namespace`.
     * The stream ends with OK when the server stops, after a last watermark, and
     * with NOT_FOUND when a watched namespace is deleted (reason NAMESPACE_NOT_FOUND).
     * More watchers than the server's limit: RESOURCE_EXHAUSTED (reason MAX_WATCHERS).
     * </pre>
     */
    default void watchExpired(dev.timecached.v1.WatchExpiredRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.WatchExpiredResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getWatchExpiredMethod(), responseObserver);
    }

    /**
     * <pre>
     * Streams a member's share of the expired entries: the events of a namespace are
     * distributed among the members of a consumer group.
     * Each event goes to one member, which must settle it (SettleExpired) within the
     * group's ack_timeout; otherwise, or when the member's stream ends before, it goes
     * to another member at once. Delivery is at least once: an event is delivered again
     * until it is settled; after max_attempts it goes to the namespace's
     * dead_letter_namespace, if set. The events of one key are delivered one after the
     * other: a later one waits until the earlier one is settled. First attempts are
     * delivered in order of death, except for those that wait for an earlier event of
     * their key.
     * An event that timed out or was NACKed goes to another member, as long as there is
     * one whose stream is read, even if that member is at its max_in_flight now; and to
     * one that does not let events time out, if there is one. A member that lets events
     * time out gets fewer: each time-out halves the number of events that it may hold,
     * down to one; each event that it settles, in time or late, adds one, up to
     * max_in_flight.
     * The first message is sent at once, and the stream ends, as in WatchExpired; the
     * stream also ends with NOT_FOUND (reason GROUP_NOT_FOUND) when the group is
     * deleted.
     * </pre>
     */
    default void consumeExpired(dev.timecached.v1.ConsumeExpiredRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.ConsumeExpiredResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getConsumeExpiredMethod(), responseObserver);
    }

    /**
     * <pre>
     * Streams entries that are about to die, in time to Touch them.
     * Each entry that has no more than `lead_time` left until its death_time is
     * delivered once, between death_time - lead_time and one bucket width, at most 1 s,
     * later. An entry that is put with less than lead_time left is delivered within the
     * same time after the put. An entry that is touched or put into a later bucket is
     * delivered again when its new time comes: after a touch, with the same version and
     * a later deadline. An entry may be delivered twice, with the same version and
     * deadline, and up to 5 s after it was removed or overwritten. An entry that dies
     * before it could be delivered, because its own ttl is that short or its watcher
     * reads too slowly, is neither delivered nor counted here: WatchExpired delivers
     * it.
     * The first message is sent at once, and the stream ends, as in WatchExpired. More
     * than 256 of them on one namespace: RESOURCE_EXHAUSTED (reason
     * MAX_EXPIRING_WATCHERS).
     * </pre>
     */
    default void watchExpiring(dev.timecached.v1.WatchExpiringRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.WatchExpiringResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getWatchExpiringMethod(), responseObserver);
    }

    /**
     * <pre>
     * Settles events that were delivered to members of a consumer group: done, deliver
     * again later, or put back into the namespace.
     * Each settlement succeeds or fails by itself, with its own result. The call
     * fails as a whole, with nothing settled: INVALID_ARGUMENT for a request that is
     * empty or too large, NOT_FOUND for its namespace or group (reasons
     * NAMESPACE_NOT_FOUND, GROUP_NOT_FOUND). Any connection may settle, not only the
     * one to which the event was delivered. A retry gets NOT_FOUND
     * (EVENT_NOT_UNSETTLED) for the events that the first call settled.
     * </pre>
     */
    default void settleExpired(dev.timecached.v1.SettleExpiredRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.SettleExpiredResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getSettleExpiredMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service TimeCacheService.
   * <pre>
   * The data of the namespaces. Every call except Scan and the watches is answered from
   * memory in O(1), whatever the number of entries or buckets.
   * </pre>
   */
  public static abstract class TimeCacheServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return TimeCacheServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service TimeCacheService.
   * <pre>
   * The data of the namespaces. Every call except Scan and the watches is answered from
   * memory in O(1), whatever the number of entries or buckets.
   * </pre>
   */
  public static final class TimeCacheServiceStub
      extends io.grpc.stub.AbstractAsyncStub<TimeCacheServiceStub> {
    private TimeCacheServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected TimeCacheServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new TimeCacheServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * Stores a value under a key and gives it a fresh time to live.
     * Success: the entry's new version. A condition that does not hold:
     * FAILED_PRECONDITION (reason KEY_EXISTS, KEY_NOT_FOUND or VERSION_MISMATCH), and
     * nothing is changed. A limit that would be exceeded: RESOURCE_EXHAUSTED with the
     * limit's name as reason, unless the namespace evicts. With `keep_deadline` an
     * existing entry keeps its time to live. Without a condition idempotent, except for
     * the version and the fresh time to live; with a condition a retry may fail because
     * the first attempt succeeded.
     * </pre>
     */
    public void put(dev.timecached.v1.PutRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.PutResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getPutMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Reads an entry.
     * Success: the entry. Miss: OK with no entry. A client that reads values of more
     * than 4 MiB must raise its gRPC's limit for received messages; otherwise gRPC ends
     * the call at the client, with RESOURCE_EXHAUSTED and no ErrorInfo. Does not renew
     * the time to live, unless the namespace is sliding or the request sets `touch`;
     * the version does not change even then. Idempotent.
     * </pre>
     */
    public void get(dev.timecached.v1.GetRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.GetResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Removes an entry. A removed entry has no expiry event.
     * Success: whether the entry existed. Miss: OK with removed = false, or, with
     * `if_version`, FAILED_PRECONDITION (reason KEY_NOT_FOUND or VERSION_MISMATCH).
     * Idempotent without `if_version`.
     * </pre>
     */
    public void remove(dev.timecached.v1.RemoveRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.RemoveResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRemoveMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Reports whether an entry exists. Never renews the time to live. Idempotent.
     * </pre>
     */
    public void contains(dev.timecached.v1.ContainsRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.ContainsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getContainsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Counts a namespace's live entries and their bytes. Exact: entries whose
     * bucket has died do not count, whether or not they have been swept.
     * Idempotent.
     * </pre>
     */
    public void size(dev.timecached.v1.SizeRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.SizeResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getSizeMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Gives an entry a fresh time to live without a new value.
     * Success: touched = true and the entry's version, which does not change. Miss: OK
     * with touched = false, or, with `if_version`, FAILED_PRECONDITION (reason
     * KEY_NOT_FOUND or VERSION_MISMATCH), and nothing is renewed. Idempotent.
     * </pre>
     */
    public void touch(dev.timecached.v1.TouchRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.TouchResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getTouchMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Appends bytes to the value of an entry, or creates the entry with them. The value
     * stays on the server.
     * Success: the value's new length and its new version. An existing entry keeps its
     * deadline, unless the request sets `touch`; a new entry gets a fresh time to live.
     * A condition that does not hold: FAILED_PRECONDITION, as in Put. A value that
     * would be larger than the namespace's max_value_bytes: FAILED_PRECONDITION
     * (VALUE_TOO_LARGE). A key that collects the parts of a Gather: FAILED_PRECONDITION
     * (VALUE_KIND_MISMATCH). After each of these errors nothing is changed. A limit
     * that would be exceeded: as in Put. Not idempotent: a retry appends again, unless
     * it has `if_version`, with which it may fail because the first attempt succeeded.
     * Costs O(bytes appended), whatever the value's length: a growing value is copied
     * once for each doubling of its length, and for each bucket that it moves to. A
     * value that has been appended to takes up to twice its length of memory; limits
     * count its length.
     * </pre>
     */
    public void append(dev.timecached.v1.AppendRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.AppendResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getAppendMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Adds a 64-bit number to the value of an entry, or xors it with one, atomically.
     * The value is a decimal number in ASCII, as a Put of "10" stores it: no sign but
     * "-", no leading zero, in the range of int64. A missing key counts as `initial`.
     * An existing entry keeps its deadline, unless the request sets `touch`; a new
     * entry gets a fresh time to live.
     * Success: the result, which is the new value; with `remove_if_zero` a result of 0
     * removes the entry instead, without an expiry event. A value that is no such
     * number: FAILED_PRECONDITION (NOT_A_NUMBER). A sum beyond 64 bits:
     * FAILED_PRECONDITION (NUMBER_OVERFLOW). An `if_version` that does not hold, and a
     * key that collects the parts of a Gather: as in Append. After each of these errors
     * nothing is changed. A limit that would be exceeded: as in Put.
     * Not idempotent: a retry combines again, unless it has `if_version`, with which it
     * may fail because the first attempt succeeded. A second xor with the same number
     * undoes the first. O(1).
     * </pre>
     */
    public void combine(dev.timecached.v1.CombineRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.CombineResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCombineMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Collects named parts under a key. The call that adds the last expected part gets
     * all of them and removes the key: exactly one call gets them. A key that is not
     * complete in time expires as any entry does, with the parts collected so far: see
     * ExpiredEvent.parts.
     * An existing entry keeps its deadline, unless the request sets `touch`; the first
     * part gets a fresh time to live.
     * Success: all parts, or how many have been collected. The same part with the same
     * value again is a success that changes nothing (`duplicate`); with another value:
     * ALREADY_EXISTS (PART_EXISTS). A request that expects other parts than the
     * collected ones do: FAILED_PRECONDITION (GATHER_MISMATCH). A key that has a value:
     * FAILED_PRECONDITION (VALUE_KIND_MISMATCH). Parts that together, with their names
     * and the expected names, would be larger than the namespace's max_value_bytes:
     * FAILED_PRECONDITION (VALUE_TOO_LARGE). After each of these errors nothing is
     * changed. A limit that would be exceeded: as in Put.
     * A retry is a duplicate as long as the key is incomplete. A retry of the part that
     * completed the key starts a new collection: a client that must not join twice
     * remembers the key for a while, or derives the key from what is joined once. Costs
     * O(1) for each collected part, whatever their sizes, and O(bytes of all parts)
     * where it completes the key. max_value_bytes bounds the response: see Get for
     * answers of more than 4 MiB.
     * </pre>
     */
    public void gather(dev.timecached.v1.GatherRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.GatherResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGatherMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Applies many operations on one namespace in one request.
     * Not a transaction: each operation succeeds or fails by itself, with its own
     * result, and operations of other calls may come between. The operations of one key
     * apply in the order of the request. The call fails as a whole, with nothing
     * applied, only if no operation can be applied: INVALID_ARGUMENT for a request that
     * is empty or too large, NOT_FOUND for its namespace.
     * Idempotent if all of its operations are. Costs one round trip, and three short
     * locks for each of the namespace's shards that it uses.
     * </pre>
     */
    public void execute(dev.timecached.v1.ExecuteRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.ExecuteResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getExecuteMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * A stream of Execute requests, each answered by one response, in order.
     * Requests are applied one after the other: what a request writes, the next one
     * reads. A client may send requests without waiting for responses. The server stops
     * reading from a client for which 16 responses, or 8 MiB of them, wait: flow
     * control then stops the client, and nothing is lost.
     * A request that fails as a whole, as in Execute, ends the stream with that error:
     * the requests that were answered have been applied; this request and those after
     * it have not. When the server stops, it answers the requests that it has read and
     * ends the stream with UNAVAILABLE (reason DRAINING).
     * </pre>
     */
    public io.grpc.stub.StreamObserver<dev.timecached.v1.ExecuteRequest> pipeline(
        io.grpc.stub.StreamObserver<dev.timecached.v1.ExecuteResponse> responseObserver) {
      return io.grpc.stub.ClientCalls.asyncBidiStreamingCall(
          getChannel().newCall(getPipelineMethod(), getCallOptions()), responseObserver);
    }

    /**
     * <pre>
     * Streams the live entries whose key begins with a prefix, in no particular
     * order.
     * An entry that is live during the whole scan appears exactly once; one that is
     * put, removed or dies meanwhile appears at most once: also if the scan is continued
     * by other calls, each with the position of the last page that came. Pages hold at
     * most 1,000 entries and about 1 MiB. Writers are never blocked for longer than one
     * step of the scan. A client that does not read a page for limits.max_call_duration,
     * 1 min by default, gets DEADLINE_EXCEEDED; how long the scan takes in all does not
     * matter. Idempotent.
     * Cost: O(entries of the namespace), whatever the prefix: keys are hashed, not
     * sorted. 0.1 s of the server's CPU for a million entries. All scans of a server
     * share one thread, in turns of at most a millisecond. For a few keys that are known
     * by name, Execute is a thousand times cheaper.
     * </pre>
     */
    public void scan(dev.timecached.v1.ScanRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.ScanResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getScanMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Streams entries as they expire.
     * The first message of each namespace is sent at once: it confirms the watch and
     * says where it starts. From then on every entry that dies is delivered exactly
     * once, in order of death, never before its deadline. A message is sent at least
     * every `heartbeat_interval`, without events if there are none.
     * No event is silently dropped. Every message has a `resume_token`: a call with
     * that token continues after that message, for as long as the events are retained.
     * A watcher that reads too slowly, or resumes too late, never slows a writer or
     * another watcher: `lost` counts exactly the events that it missed, and the stream
     * continues; or, with `fail_on_loss`, the stream ends with OUT_OF_RANGE (reason
     * RESUME_POINT_TRIMMED, metadata `lost`). A token that the namespace's log has not
     * reached: OUT_OF_RANGE (RESUME_POINT_AHEAD). A token of another log, from before
     * the namespace's deletion, the server's restart (MEMORY), a power loss (ASYNC) or
     * the restore of a backup: FAILED_PRECONDITION (LOG_CHANGED); the number of events
     * lost is then unknown. Each of these errors has the metadata `namespace`.
     * The stream ends with OK when the server stops, after a last watermark, and
     * with NOT_FOUND when a watched namespace is deleted (reason NAMESPACE_NOT_FOUND).
     * More watchers than the server's limit: RESOURCE_EXHAUSTED (reason MAX_WATCHERS).
     * </pre>
     */
    public void watchExpired(dev.timecached.v1.WatchExpiredRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.WatchExpiredResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getWatchExpiredMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Streams a member's share of the expired entries: the events of a namespace are
     * distributed among the members of a consumer group.
     * Each event goes to one member, which must settle it (SettleExpired) within the
     * group's ack_timeout; otherwise, or when the member's stream ends before, it goes
     * to another member at once. Delivery is at least once: an event is delivered again
     * until it is settled; after max_attempts it goes to the namespace's
     * dead_letter_namespace, if set. The events of one key are delivered one after the
     * other: a later one waits until the earlier one is settled. First attempts are
     * delivered in order of death, except for those that wait for an earlier event of
     * their key.
     * An event that timed out or was NACKed goes to another member, as long as there is
     * one whose stream is read, even if that member is at its max_in_flight now; and to
     * one that does not let events time out, if there is one. A member that lets events
     * time out gets fewer: each time-out halves the number of events that it may hold,
     * down to one; each event that it settles, in time or late, adds one, up to
     * max_in_flight.
     * The first message is sent at once, and the stream ends, as in WatchExpired; the
     * stream also ends with NOT_FOUND (reason GROUP_NOT_FOUND) when the group is
     * deleted.
     * </pre>
     */
    public void consumeExpired(dev.timecached.v1.ConsumeExpiredRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.ConsumeExpiredResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getConsumeExpiredMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Streams entries that are about to die, in time to Touch them.
     * Each entry that has no more than `lead_time` left until its death_time is
     * delivered once, between death_time - lead_time and one bucket width, at most 1 s,
     * later. An entry that is put with less than lead_time left is delivered within the
     * same time after the put. An entry that is touched or put into a later bucket is
     * delivered again when its new time comes: after a touch, with the same version and
     * a later deadline. An entry may be delivered twice, with the same version and
     * deadline, and up to 5 s after it was removed or overwritten. An entry that dies
     * before it could be delivered, because its own ttl is that short or its watcher
     * reads too slowly, is neither delivered nor counted here: WatchExpired delivers
     * it.
     * The first message is sent at once, and the stream ends, as in WatchExpired. More
     * than 256 of them on one namespace: RESOURCE_EXHAUSTED (reason
     * MAX_EXPIRING_WATCHERS).
     * </pre>
     */
    public void watchExpiring(dev.timecached.v1.WatchExpiringRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.WatchExpiringResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getWatchExpiringMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Settles events that were delivered to members of a consumer group: done, deliver
     * again later, or put back into the namespace.
     * Each settlement succeeds or fails by itself, with its own result. The call
     * fails as a whole, with nothing settled: INVALID_ARGUMENT for a request that is
     * empty or too large, NOT_FOUND for its namespace or group (reasons
     * NAMESPACE_NOT_FOUND, GROUP_NOT_FOUND). Any connection may settle, not only the
     * one to which the event was delivered. A retry gets NOT_FOUND
     * (EVENT_NOT_UNSETTLED) for the events that the first call settled.
     * </pre>
     */
    public void settleExpired(dev.timecached.v1.SettleExpiredRequest request,
        io.grpc.stub.StreamObserver<dev.timecached.v1.SettleExpiredResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getSettleExpiredMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service TimeCacheService.
   * <pre>
   * The data of the namespaces. Every call except Scan and the watches is answered from
   * memory in O(1), whatever the number of entries or buckets.
   * </pre>
   */
  public static final class TimeCacheServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<TimeCacheServiceBlockingV2Stub> {
    private TimeCacheServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected TimeCacheServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new TimeCacheServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Stores a value under a key and gives it a fresh time to live.
     * Success: the entry's new version. A condition that does not hold:
     * FAILED_PRECONDITION (reason KEY_EXISTS, KEY_NOT_FOUND or VERSION_MISMATCH), and
     * nothing is changed. A limit that would be exceeded: RESOURCE_EXHAUSTED with the
     * limit's name as reason, unless the namespace evicts. With `keep_deadline` an
     * existing entry keeps its time to live. Without a condition idempotent, except for
     * the version and the fresh time to live; with a condition a retry may fail because
     * the first attempt succeeded.
     * </pre>
     */
    public dev.timecached.v1.PutResponse put(dev.timecached.v1.PutRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getPutMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads an entry.
     * Success: the entry. Miss: OK with no entry. A client that reads values of more
     * than 4 MiB must raise its gRPC's limit for received messages; otherwise gRPC ends
     * the call at the client, with RESOURCE_EXHAUSTED and no ErrorInfo. Does not renew
     * the time to live, unless the namespace is sliding or the request sets `touch`;
     * the version does not change even then. Idempotent.
     * </pre>
     */
    public dev.timecached.v1.GetResponse get(dev.timecached.v1.GetRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Removes an entry. A removed entry has no expiry event.
     * Success: whether the entry existed. Miss: OK with removed = false, or, with
     * `if_version`, FAILED_PRECONDITION (reason KEY_NOT_FOUND or VERSION_MISMATCH).
     * Idempotent without `if_version`.
     * </pre>
     */
    public dev.timecached.v1.RemoveResponse remove(dev.timecached.v1.RemoveRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRemoveMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reports whether an entry exists. Never renews the time to live. Idempotent.
     * </pre>
     */
    public dev.timecached.v1.ContainsResponse contains(dev.timecached.v1.ContainsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getContainsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Counts a namespace's live entries and their bytes. Exact: entries whose
     * bucket has died do not count, whether or not they have been swept.
     * Idempotent.
     * </pre>
     */
    public dev.timecached.v1.SizeResponse size(dev.timecached.v1.SizeRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getSizeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Gives an entry a fresh time to live without a new value.
     * Success: touched = true and the entry's version, which does not change. Miss: OK
     * with touched = false, or, with `if_version`, FAILED_PRECONDITION (reason
     * KEY_NOT_FOUND or VERSION_MISMATCH), and nothing is renewed. Idempotent.
     * </pre>
     */
    public dev.timecached.v1.TouchResponse touch(dev.timecached.v1.TouchRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getTouchMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Appends bytes to the value of an entry, or creates the entry with them. The value
     * stays on the server.
     * Success: the value's new length and its new version. An existing entry keeps its
     * deadline, unless the request sets `touch`; a new entry gets a fresh time to live.
     * A condition that does not hold: FAILED_PRECONDITION, as in Put. A value that
     * would be larger than the namespace's max_value_bytes: FAILED_PRECONDITION
     * (VALUE_TOO_LARGE). A key that collects the parts of a Gather: FAILED_PRECONDITION
     * (VALUE_KIND_MISMATCH). After each of these errors nothing is changed. A limit
     * that would be exceeded: as in Put. Not idempotent: a retry appends again, unless
     * it has `if_version`, with which it may fail because the first attempt succeeded.
     * Costs O(bytes appended), whatever the value's length: a growing value is copied
     * once for each doubling of its length, and for each bucket that it moves to. A
     * value that has been appended to takes up to twice its length of memory; limits
     * count its length.
     * </pre>
     */
    public dev.timecached.v1.AppendResponse append(dev.timecached.v1.AppendRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getAppendMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Adds a 64-bit number to the value of an entry, or xors it with one, atomically.
     * The value is a decimal number in ASCII, as a Put of "10" stores it: no sign but
     * "-", no leading zero, in the range of int64. A missing key counts as `initial`.
     * An existing entry keeps its deadline, unless the request sets `touch`; a new
     * entry gets a fresh time to live.
     * Success: the result, which is the new value; with `remove_if_zero` a result of 0
     * removes the entry instead, without an expiry event. A value that is no such
     * number: FAILED_PRECONDITION (NOT_A_NUMBER). A sum beyond 64 bits:
     * FAILED_PRECONDITION (NUMBER_OVERFLOW). An `if_version` that does not hold, and a
     * key that collects the parts of a Gather: as in Append. After each of these errors
     * nothing is changed. A limit that would be exceeded: as in Put.
     * Not idempotent: a retry combines again, unless it has `if_version`, with which it
     * may fail because the first attempt succeeded. A second xor with the same number
     * undoes the first. O(1).
     * </pre>
     */
    public dev.timecached.v1.CombineResponse combine(dev.timecached.v1.CombineRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCombineMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Collects named parts under a key. The call that adds the last expected part gets
     * all of them and removes the key: exactly one call gets them. A key that is not
     * complete in time expires as any entry does, with the parts collected so far: see
     * ExpiredEvent.parts.
     * An existing entry keeps its deadline, unless the request sets `touch`; the first
     * part gets a fresh time to live.
     * Success: all parts, or how many have been collected. The same part with the same
     * value again is a success that changes nothing (`duplicate`); with another value:
     * ALREADY_EXISTS (PART_EXISTS). A request that expects other parts than the
     * collected ones do: FAILED_PRECONDITION (GATHER_MISMATCH). A key that has a value:
     * FAILED_PRECONDITION (VALUE_KIND_MISMATCH). Parts that together, with their names
     * and the expected names, would be larger than the namespace's max_value_bytes:
     * FAILED_PRECONDITION (VALUE_TOO_LARGE). After each of these errors nothing is
     * changed. A limit that would be exceeded: as in Put.
     * A retry is a duplicate as long as the key is incomplete. A retry of the part that
     * completed the key starts a new collection: a client that must not join twice
     * remembers the key for a while, or derives the key from what is joined once. Costs
     * O(1) for each collected part, whatever their sizes, and O(bytes of all parts)
     * where it completes the key. max_value_bytes bounds the response: see Get for
     * answers of more than 4 MiB.
     * </pre>
     */
    public dev.timecached.v1.GatherResponse gather(dev.timecached.v1.GatherRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGatherMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Applies many operations on one namespace in one request.
     * Not a transaction: each operation succeeds or fails by itself, with its own
     * result, and operations of other calls may come between. The operations of one key
     * apply in the order of the request. The call fails as a whole, with nothing
     * applied, only if no operation can be applied: INVALID_ARGUMENT for a request that
     * is empty or too large, NOT_FOUND for its namespace.
     * Idempotent if all of its operations are. Costs one round trip, and three short
     * locks for each of the namespace's shards that it uses.
     * </pre>
     */
    public dev.timecached.v1.ExecuteResponse execute(dev.timecached.v1.ExecuteRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getExecuteMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * A stream of Execute requests, each answered by one response, in order.
     * Requests are applied one after the other: what a request writes, the next one
     * reads. A client may send requests without waiting for responses. The server stops
     * reading from a client for which 16 responses, or 8 MiB of them, wait: flow
     * control then stops the client, and nothing is lost.
     * A request that fails as a whole, as in Execute, ends the stream with that error:
     * the requests that were answered have been applied; this request and those after
     * it have not. When the server stops, it answers the requests that it has read and
     * ends the stream with UNAVAILABLE (reason DRAINING).
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<dev.timecached.v1.ExecuteRequest, dev.timecached.v1.ExecuteResponse>
        pipeline() {
      return io.grpc.stub.ClientCalls.blockingBidiStreamingCall(
          getChannel(), getPipelineMethod(), getCallOptions());
    }

    /**
     * <pre>
     * Streams the live entries whose key begins with a prefix, in no particular
     * order.
     * An entry that is live during the whole scan appears exactly once; one that is
     * put, removed or dies meanwhile appears at most once: also if the scan is continued
     * by other calls, each with the position of the last page that came. Pages hold at
     * most 1,000 entries and about 1 MiB. Writers are never blocked for longer than one
     * step of the scan. A client that does not read a page for limits.max_call_duration,
     * 1 min by default, gets DEADLINE_EXCEEDED; how long the scan takes in all does not
     * matter. Idempotent.
     * Cost: O(entries of the namespace), whatever the prefix: keys are hashed, not
     * sorted. 0.1 s of the server's CPU for a million entries. All scans of a server
     * share one thread, in turns of at most a millisecond. For a few keys that are known
     * by name, Execute is a thousand times cheaper.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, dev.timecached.v1.ScanResponse>
        scan(dev.timecached.v1.ScanRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getScanMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams entries as they expire.
     * The first message of each namespace is sent at once: it confirms the watch and
     * says where it starts. From then on every entry that dies is delivered exactly
     * once, in order of death, never before its deadline. A message is sent at least
     * every `heartbeat_interval`, without events if there are none.
     * No event is silently dropped. Every message has a `resume_token`: a call with
     * that token continues after that message, for as long as the events are retained.
     * A watcher that reads too slowly, or resumes too late, never slows a writer or
     * another watcher: `lost` counts exactly the events that it missed, and the stream
     * continues; or, with `fail_on_loss`, the stream ends with OUT_OF_RANGE (reason
     * RESUME_POINT_TRIMMED, metadata `lost`). A token that the namespace's log has not
     * reached: OUT_OF_RANGE (RESUME_POINT_AHEAD). A token of another log, from before
     * the namespace's deletion, the server's restart (MEMORY), a power loss (ASYNC) or
     * the restore of a backup: FAILED_PRECONDITION (LOG_CHANGED); the number of events
     * lost is then unknown. Each of these errors has the metadata `namespace`.
     * The stream ends with OK when the server stops, after a last watermark, and
     * with NOT_FOUND when a watched namespace is deleted (reason NAMESPACE_NOT_FOUND).
     * More watchers than the server's limit: RESOURCE_EXHAUSTED (reason MAX_WATCHERS).
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, dev.timecached.v1.WatchExpiredResponse>
        watchExpired(dev.timecached.v1.WatchExpiredRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getWatchExpiredMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams a member's share of the expired entries: the events of a namespace are
     * distributed among the members of a consumer group.
     * Each event goes to one member, which must settle it (SettleExpired) within the
     * group's ack_timeout; otherwise, or when the member's stream ends before, it goes
     * to another member at once. Delivery is at least once: an event is delivered again
     * until it is settled; after max_attempts it goes to the namespace's
     * dead_letter_namespace, if set. The events of one key are delivered one after the
     * other: a later one waits until the earlier one is settled. First attempts are
     * delivered in order of death, except for those that wait for an earlier event of
     * their key.
     * An event that timed out or was NACKed goes to another member, as long as there is
     * one whose stream is read, even if that member is at its max_in_flight now; and to
     * one that does not let events time out, if there is one. A member that lets events
     * time out gets fewer: each time-out halves the number of events that it may hold,
     * down to one; each event that it settles, in time or late, adds one, up to
     * max_in_flight.
     * The first message is sent at once, and the stream ends, as in WatchExpired; the
     * stream also ends with NOT_FOUND (reason GROUP_NOT_FOUND) when the group is
     * deleted.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, dev.timecached.v1.ConsumeExpiredResponse>
        consumeExpired(dev.timecached.v1.ConsumeExpiredRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getConsumeExpiredMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams entries that are about to die, in time to Touch them.
     * Each entry that has no more than `lead_time` left until its death_time is
     * delivered once, between death_time - lead_time and one bucket width, at most 1 s,
     * later. An entry that is put with less than lead_time left is delivered within the
     * same time after the put. An entry that is touched or put into a later bucket is
     * delivered again when its new time comes: after a touch, with the same version and
     * a later deadline. An entry may be delivered twice, with the same version and
     * deadline, and up to 5 s after it was removed or overwritten. An entry that dies
     * before it could be delivered, because its own ttl is that short or its watcher
     * reads too slowly, is neither delivered nor counted here: WatchExpired delivers
     * it.
     * The first message is sent at once, and the stream ends, as in WatchExpired. More
     * than 256 of them on one namespace: RESOURCE_EXHAUSTED (reason
     * MAX_EXPIRING_WATCHERS).
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, dev.timecached.v1.WatchExpiringResponse>
        watchExpiring(dev.timecached.v1.WatchExpiringRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getWatchExpiringMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Settles events that were delivered to members of a consumer group: done, deliver
     * again later, or put back into the namespace.
     * Each settlement succeeds or fails by itself, with its own result. The call
     * fails as a whole, with nothing settled: INVALID_ARGUMENT for a request that is
     * empty or too large, NOT_FOUND for its namespace or group (reasons
     * NAMESPACE_NOT_FOUND, GROUP_NOT_FOUND). Any connection may settle, not only the
     * one to which the event was delivered. A retry gets NOT_FOUND
     * (EVENT_NOT_UNSETTLED) for the events that the first call settled.
     * </pre>
     */
    public dev.timecached.v1.SettleExpiredResponse settleExpired(dev.timecached.v1.SettleExpiredRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getSettleExpiredMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service TimeCacheService.
   * <pre>
   * The data of the namespaces. Every call except Scan and the watches is answered from
   * memory in O(1), whatever the number of entries or buckets.
   * </pre>
   */
  public static final class TimeCacheServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<TimeCacheServiceBlockingStub> {
    private TimeCacheServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected TimeCacheServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new TimeCacheServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Stores a value under a key and gives it a fresh time to live.
     * Success: the entry's new version. A condition that does not hold:
     * FAILED_PRECONDITION (reason KEY_EXISTS, KEY_NOT_FOUND or VERSION_MISMATCH), and
     * nothing is changed. A limit that would be exceeded: RESOURCE_EXHAUSTED with the
     * limit's name as reason, unless the namespace evicts. With `keep_deadline` an
     * existing entry keeps its time to live. Without a condition idempotent, except for
     * the version and the fresh time to live; with a condition a retry may fail because
     * the first attempt succeeded.
     * </pre>
     */
    public dev.timecached.v1.PutResponse put(dev.timecached.v1.PutRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getPutMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads an entry.
     * Success: the entry. Miss: OK with no entry. A client that reads values of more
     * than 4 MiB must raise its gRPC's limit for received messages; otherwise gRPC ends
     * the call at the client, with RESOURCE_EXHAUSTED and no ErrorInfo. Does not renew
     * the time to live, unless the namespace is sliding or the request sets `touch`;
     * the version does not change even then. Idempotent.
     * </pre>
     */
    public dev.timecached.v1.GetResponse get(dev.timecached.v1.GetRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Removes an entry. A removed entry has no expiry event.
     * Success: whether the entry existed. Miss: OK with removed = false, or, with
     * `if_version`, FAILED_PRECONDITION (reason KEY_NOT_FOUND or VERSION_MISMATCH).
     * Idempotent without `if_version`.
     * </pre>
     */
    public dev.timecached.v1.RemoveResponse remove(dev.timecached.v1.RemoveRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRemoveMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reports whether an entry exists. Never renews the time to live. Idempotent.
     * </pre>
     */
    public dev.timecached.v1.ContainsResponse contains(dev.timecached.v1.ContainsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getContainsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Counts a namespace's live entries and their bytes. Exact: entries whose
     * bucket has died do not count, whether or not they have been swept.
     * Idempotent.
     * </pre>
     */
    public dev.timecached.v1.SizeResponse size(dev.timecached.v1.SizeRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getSizeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Gives an entry a fresh time to live without a new value.
     * Success: touched = true and the entry's version, which does not change. Miss: OK
     * with touched = false, or, with `if_version`, FAILED_PRECONDITION (reason
     * KEY_NOT_FOUND or VERSION_MISMATCH), and nothing is renewed. Idempotent.
     * </pre>
     */
    public dev.timecached.v1.TouchResponse touch(dev.timecached.v1.TouchRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getTouchMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Appends bytes to the value of an entry, or creates the entry with them. The value
     * stays on the server.
     * Success: the value's new length and its new version. An existing entry keeps its
     * deadline, unless the request sets `touch`; a new entry gets a fresh time to live.
     * A condition that does not hold: FAILED_PRECONDITION, as in Put. A value that
     * would be larger than the namespace's max_value_bytes: FAILED_PRECONDITION
     * (VALUE_TOO_LARGE). A key that collects the parts of a Gather: FAILED_PRECONDITION
     * (VALUE_KIND_MISMATCH). After each of these errors nothing is changed. A limit
     * that would be exceeded: as in Put. Not idempotent: a retry appends again, unless
     * it has `if_version`, with which it may fail because the first attempt succeeded.
     * Costs O(bytes appended), whatever the value's length: a growing value is copied
     * once for each doubling of its length, and for each bucket that it moves to. A
     * value that has been appended to takes up to twice its length of memory; limits
     * count its length.
     * </pre>
     */
    public dev.timecached.v1.AppendResponse append(dev.timecached.v1.AppendRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getAppendMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Adds a 64-bit number to the value of an entry, or xors it with one, atomically.
     * The value is a decimal number in ASCII, as a Put of "10" stores it: no sign but
     * "-", no leading zero, in the range of int64. A missing key counts as `initial`.
     * An existing entry keeps its deadline, unless the request sets `touch`; a new
     * entry gets a fresh time to live.
     * Success: the result, which is the new value; with `remove_if_zero` a result of 0
     * removes the entry instead, without an expiry event. A value that is no such
     * number: FAILED_PRECONDITION (NOT_A_NUMBER). A sum beyond 64 bits:
     * FAILED_PRECONDITION (NUMBER_OVERFLOW). An `if_version` that does not hold, and a
     * key that collects the parts of a Gather: as in Append. After each of these errors
     * nothing is changed. A limit that would be exceeded: as in Put.
     * Not idempotent: a retry combines again, unless it has `if_version`, with which it
     * may fail because the first attempt succeeded. A second xor with the same number
     * undoes the first. O(1).
     * </pre>
     */
    public dev.timecached.v1.CombineResponse combine(dev.timecached.v1.CombineRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCombineMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Collects named parts under a key. The call that adds the last expected part gets
     * all of them and removes the key: exactly one call gets them. A key that is not
     * complete in time expires as any entry does, with the parts collected so far: see
     * ExpiredEvent.parts.
     * An existing entry keeps its deadline, unless the request sets `touch`; the first
     * part gets a fresh time to live.
     * Success: all parts, or how many have been collected. The same part with the same
     * value again is a success that changes nothing (`duplicate`); with another value:
     * ALREADY_EXISTS (PART_EXISTS). A request that expects other parts than the
     * collected ones do: FAILED_PRECONDITION (GATHER_MISMATCH). A key that has a value:
     * FAILED_PRECONDITION (VALUE_KIND_MISMATCH). Parts that together, with their names
     * and the expected names, would be larger than the namespace's max_value_bytes:
     * FAILED_PRECONDITION (VALUE_TOO_LARGE). After each of these errors nothing is
     * changed. A limit that would be exceeded: as in Put.
     * A retry is a duplicate as long as the key is incomplete. A retry of the part that
     * completed the key starts a new collection: a client that must not join twice
     * remembers the key for a while, or derives the key from what is joined once. Costs
     * O(1) for each collected part, whatever their sizes, and O(bytes of all parts)
     * where it completes the key. max_value_bytes bounds the response: see Get for
     * answers of more than 4 MiB.
     * </pre>
     */
    public dev.timecached.v1.GatherResponse gather(dev.timecached.v1.GatherRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGatherMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Applies many operations on one namespace in one request.
     * Not a transaction: each operation succeeds or fails by itself, with its own
     * result, and operations of other calls may come between. The operations of one key
     * apply in the order of the request. The call fails as a whole, with nothing
     * applied, only if no operation can be applied: INVALID_ARGUMENT for a request that
     * is empty or too large, NOT_FOUND for its namespace.
     * Idempotent if all of its operations are. Costs one round trip, and three short
     * locks for each of the namespace's shards that it uses.
     * </pre>
     */
    public dev.timecached.v1.ExecuteResponse execute(dev.timecached.v1.ExecuteRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getExecuteMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams the live entries whose key begins with a prefix, in no particular
     * order.
     * An entry that is live during the whole scan appears exactly once; one that is
     * put, removed or dies meanwhile appears at most once: also if the scan is continued
     * by other calls, each with the position of the last page that came. Pages hold at
     * most 1,000 entries and about 1 MiB. Writers are never blocked for longer than one
     * step of the scan. A client that does not read a page for limits.max_call_duration,
     * 1 min by default, gets DEADLINE_EXCEEDED; how long the scan takes in all does not
     * matter. Idempotent.
     * Cost: O(entries of the namespace), whatever the prefix: keys are hashed, not
     * sorted. 0.1 s of the server's CPU for a million entries. All scans of a server
     * share one thread, in turns of at most a millisecond. For a few keys that are known
     * by name, Execute is a thousand times cheaper.
     * </pre>
     */
    public java.util.Iterator<dev.timecached.v1.ScanResponse> scan(
        dev.timecached.v1.ScanRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getScanMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams entries as they expire.
     * The first message of each namespace is sent at once: it confirms the watch and
     * says where it starts. From then on every entry that dies is delivered exactly
     * once, in order of death, never before its deadline. A message is sent at least
     * every `heartbeat_interval`, without events if there are none.
     * No event is silently dropped. Every message has a `resume_token`: a call with
     * that token continues after that message, for as long as the events are retained.
     * A watcher that reads too slowly, or resumes too late, never slows a writer or
     * another watcher: `lost` counts exactly the events that it missed, and the stream
     * continues; or, with `fail_on_loss`, the stream ends with OUT_OF_RANGE (reason
     * RESUME_POINT_TRIMMED, metadata `lost`). A token that the namespace's log has not
     * reached: OUT_OF_RANGE (RESUME_POINT_AHEAD). A token of another log, from before
     * the namespace's deletion, the server's restart (MEMORY), a power loss (ASYNC) or
     * the restore of a backup: FAILED_PRECONDITION (LOG_CHANGED); the number of events
     * lost is then unknown. Each of these errors has the metadata `namespace`.
     * The stream ends with OK when the server stops, after a last watermark, and
     * with NOT_FOUND when a watched namespace is deleted (reason NAMESPACE_NOT_FOUND).
     * More watchers than the server's limit: RESOURCE_EXHAUSTED (reason MAX_WATCHERS).
     * </pre>
     */
    public java.util.Iterator<dev.timecached.v1.WatchExpiredResponse> watchExpired(
        dev.timecached.v1.WatchExpiredRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getWatchExpiredMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams a member's share of the expired entries: the events of a namespace are
     * distributed among the members of a consumer group.
     * Each event goes to one member, which must settle it (SettleExpired) within the
     * group's ack_timeout; otherwise, or when the member's stream ends before, it goes
     * to another member at once. Delivery is at least once: an event is delivered again
     * until it is settled; after max_attempts it goes to the namespace's
     * dead_letter_namespace, if set. The events of one key are delivered one after the
     * other: a later one waits until the earlier one is settled. First attempts are
     * delivered in order of death, except for those that wait for an earlier event of
     * their key.
     * An event that timed out or was NACKed goes to another member, as long as there is
     * one whose stream is read, even if that member is at its max_in_flight now; and to
     * one that does not let events time out, if there is one. A member that lets events
     * time out gets fewer: each time-out halves the number of events that it may hold,
     * down to one; each event that it settles, in time or late, adds one, up to
     * max_in_flight.
     * The first message is sent at once, and the stream ends, as in WatchExpired; the
     * stream also ends with NOT_FOUND (reason GROUP_NOT_FOUND) when the group is
     * deleted.
     * </pre>
     */
    public java.util.Iterator<dev.timecached.v1.ConsumeExpiredResponse> consumeExpired(
        dev.timecached.v1.ConsumeExpiredRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getConsumeExpiredMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Streams entries that are about to die, in time to Touch them.
     * Each entry that has no more than `lead_time` left until its death_time is
     * delivered once, between death_time - lead_time and one bucket width, at most 1 s,
     * later. An entry that is put with less than lead_time left is delivered within the
     * same time after the put. An entry that is touched or put into a later bucket is
     * delivered again when its new time comes: after a touch, with the same version and
     * a later deadline. An entry may be delivered twice, with the same version and
     * deadline, and up to 5 s after it was removed or overwritten. An entry that dies
     * before it could be delivered, because its own ttl is that short or its watcher
     * reads too slowly, is neither delivered nor counted here: WatchExpired delivers
     * it.
     * The first message is sent at once, and the stream ends, as in WatchExpired. More
     * than 256 of them on one namespace: RESOURCE_EXHAUSTED (reason
     * MAX_EXPIRING_WATCHERS).
     * </pre>
     */
    public java.util.Iterator<dev.timecached.v1.WatchExpiringResponse> watchExpiring(
        dev.timecached.v1.WatchExpiringRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getWatchExpiringMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Settles events that were delivered to members of a consumer group: done, deliver
     * again later, or put back into the namespace.
     * Each settlement succeeds or fails by itself, with its own result. The call
     * fails as a whole, with nothing settled: INVALID_ARGUMENT for a request that is
     * empty or too large, NOT_FOUND for its namespace or group (reasons
     * NAMESPACE_NOT_FOUND, GROUP_NOT_FOUND). Any connection may settle, not only the
     * one to which the event was delivered. A retry gets NOT_FOUND
     * (EVENT_NOT_UNSETTLED) for the events that the first call settled.
     * </pre>
     */
    public dev.timecached.v1.SettleExpiredResponse settleExpired(dev.timecached.v1.SettleExpiredRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getSettleExpiredMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service TimeCacheService.
   * <pre>
   * The data of the namespaces. Every call except Scan and the watches is answered from
   * memory in O(1), whatever the number of entries or buckets.
   * </pre>
   */
  public static final class TimeCacheServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<TimeCacheServiceFutureStub> {
    private TimeCacheServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected TimeCacheServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new TimeCacheServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Stores a value under a key and gives it a fresh time to live.
     * Success: the entry's new version. A condition that does not hold:
     * FAILED_PRECONDITION (reason KEY_EXISTS, KEY_NOT_FOUND or VERSION_MISMATCH), and
     * nothing is changed. A limit that would be exceeded: RESOURCE_EXHAUSTED with the
     * limit's name as reason, unless the namespace evicts. With `keep_deadline` an
     * existing entry keeps its time to live. Without a condition idempotent, except for
     * the version and the fresh time to live; with a condition a retry may fail because
     * the first attempt succeeded.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.PutResponse> put(
        dev.timecached.v1.PutRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getPutMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Reads an entry.
     * Success: the entry. Miss: OK with no entry. A client that reads values of more
     * than 4 MiB must raise its gRPC's limit for received messages; otherwise gRPC ends
     * the call at the client, with RESOURCE_EXHAUSTED and no ErrorInfo. Does not renew
     * the time to live, unless the namespace is sliding or the request sets `touch`;
     * the version does not change even then. Idempotent.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.GetResponse> get(
        dev.timecached.v1.GetRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Removes an entry. A removed entry has no expiry event.
     * Success: whether the entry existed. Miss: OK with removed = false, or, with
     * `if_version`, FAILED_PRECONDITION (reason KEY_NOT_FOUND or VERSION_MISMATCH).
     * Idempotent without `if_version`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.RemoveResponse> remove(
        dev.timecached.v1.RemoveRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRemoveMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Reports whether an entry exists. Never renews the time to live. Idempotent.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.ContainsResponse> contains(
        dev.timecached.v1.ContainsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getContainsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Counts a namespace's live entries and their bytes. Exact: entries whose
     * bucket has died do not count, whether or not they have been swept.
     * Idempotent.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.SizeResponse> size(
        dev.timecached.v1.SizeRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getSizeMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Gives an entry a fresh time to live without a new value.
     * Success: touched = true and the entry's version, which does not change. Miss: OK
     * with touched = false, or, with `if_version`, FAILED_PRECONDITION (reason
     * KEY_NOT_FOUND or VERSION_MISMATCH), and nothing is renewed. Idempotent.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.TouchResponse> touch(
        dev.timecached.v1.TouchRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getTouchMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Appends bytes to the value of an entry, or creates the entry with them. The value
     * stays on the server.
     * Success: the value's new length and its new version. An existing entry keeps its
     * deadline, unless the request sets `touch`; a new entry gets a fresh time to live.
     * A condition that does not hold: FAILED_PRECONDITION, as in Put. A value that
     * would be larger than the namespace's max_value_bytes: FAILED_PRECONDITION
     * (VALUE_TOO_LARGE). A key that collects the parts of a Gather: FAILED_PRECONDITION
     * (VALUE_KIND_MISMATCH). After each of these errors nothing is changed. A limit
     * that would be exceeded: as in Put. Not idempotent: a retry appends again, unless
     * it has `if_version`, with which it may fail because the first attempt succeeded.
     * Costs O(bytes appended), whatever the value's length: a growing value is copied
     * once for each doubling of its length, and for each bucket that it moves to. A
     * value that has been appended to takes up to twice its length of memory; limits
     * count its length.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.AppendResponse> append(
        dev.timecached.v1.AppendRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getAppendMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Adds a 64-bit number to the value of an entry, or xors it with one, atomically.
     * The value is a decimal number in ASCII, as a Put of "10" stores it: no sign but
     * "-", no leading zero, in the range of int64. A missing key counts as `initial`.
     * An existing entry keeps its deadline, unless the request sets `touch`; a new
     * entry gets a fresh time to live.
     * Success: the result, which is the new value; with `remove_if_zero` a result of 0
     * removes the entry instead, without an expiry event. A value that is no such
     * number: FAILED_PRECONDITION (NOT_A_NUMBER). A sum beyond 64 bits:
     * FAILED_PRECONDITION (NUMBER_OVERFLOW). An `if_version` that does not hold, and a
     * key that collects the parts of a Gather: as in Append. After each of these errors
     * nothing is changed. A limit that would be exceeded: as in Put.
     * Not idempotent: a retry combines again, unless it has `if_version`, with which it
     * may fail because the first attempt succeeded. A second xor with the same number
     * undoes the first. O(1).
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.CombineResponse> combine(
        dev.timecached.v1.CombineRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCombineMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Collects named parts under a key. The call that adds the last expected part gets
     * all of them and removes the key: exactly one call gets them. A key that is not
     * complete in time expires as any entry does, with the parts collected so far: see
     * ExpiredEvent.parts.
     * An existing entry keeps its deadline, unless the request sets `touch`; the first
     * part gets a fresh time to live.
     * Success: all parts, or how many have been collected. The same part with the same
     * value again is a success that changes nothing (`duplicate`); with another value:
     * ALREADY_EXISTS (PART_EXISTS). A request that expects other parts than the
     * collected ones do: FAILED_PRECONDITION (GATHER_MISMATCH). A key that has a value:
     * FAILED_PRECONDITION (VALUE_KIND_MISMATCH). Parts that together, with their names
     * and the expected names, would be larger than the namespace's max_value_bytes:
     * FAILED_PRECONDITION (VALUE_TOO_LARGE). After each of these errors nothing is
     * changed. A limit that would be exceeded: as in Put.
     * A retry is a duplicate as long as the key is incomplete. A retry of the part that
     * completed the key starts a new collection: a client that must not join twice
     * remembers the key for a while, or derives the key from what is joined once. Costs
     * O(1) for each collected part, whatever their sizes, and O(bytes of all parts)
     * where it completes the key. max_value_bytes bounds the response: see Get for
     * answers of more than 4 MiB.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.GatherResponse> gather(
        dev.timecached.v1.GatherRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGatherMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Applies many operations on one namespace in one request.
     * Not a transaction: each operation succeeds or fails by itself, with its own
     * result, and operations of other calls may come between. The operations of one key
     * apply in the order of the request. The call fails as a whole, with nothing
     * applied, only if no operation can be applied: INVALID_ARGUMENT for a request that
     * is empty or too large, NOT_FOUND for its namespace.
     * Idempotent if all of its operations are. Costs one round trip, and three short
     * locks for each of the namespace's shards that it uses.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.ExecuteResponse> execute(
        dev.timecached.v1.ExecuteRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getExecuteMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Settles events that were delivered to members of a consumer group: done, deliver
     * again later, or put back into the namespace.
     * Each settlement succeeds or fails by itself, with its own result. The call
     * fails as a whole, with nothing settled: INVALID_ARGUMENT for a request that is
     * empty or too large, NOT_FOUND for its namespace or group (reasons
     * NAMESPACE_NOT_FOUND, GROUP_NOT_FOUND). Any connection may settle, not only the
     * one to which the event was delivered. A retry gets NOT_FOUND
     * (EVENT_NOT_UNSETTLED) for the events that the first call settled.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<dev.timecached.v1.SettleExpiredResponse> settleExpired(
        dev.timecached.v1.SettleExpiredRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getSettleExpiredMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_PUT = 0;
  private static final int METHODID_GET = 1;
  private static final int METHODID_REMOVE = 2;
  private static final int METHODID_CONTAINS = 3;
  private static final int METHODID_SIZE = 4;
  private static final int METHODID_TOUCH = 5;
  private static final int METHODID_APPEND = 6;
  private static final int METHODID_COMBINE = 7;
  private static final int METHODID_GATHER = 8;
  private static final int METHODID_EXECUTE = 9;
  private static final int METHODID_SCAN = 10;
  private static final int METHODID_WATCH_EXPIRED = 11;
  private static final int METHODID_CONSUME_EXPIRED = 12;
  private static final int METHODID_WATCH_EXPIRING = 13;
  private static final int METHODID_SETTLE_EXPIRED = 14;
  private static final int METHODID_PIPELINE = 15;

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
        case METHODID_PUT:
          serviceImpl.put((dev.timecached.v1.PutRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.PutResponse>) responseObserver);
          break;
        case METHODID_GET:
          serviceImpl.get((dev.timecached.v1.GetRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.GetResponse>) responseObserver);
          break;
        case METHODID_REMOVE:
          serviceImpl.remove((dev.timecached.v1.RemoveRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.RemoveResponse>) responseObserver);
          break;
        case METHODID_CONTAINS:
          serviceImpl.contains((dev.timecached.v1.ContainsRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.ContainsResponse>) responseObserver);
          break;
        case METHODID_SIZE:
          serviceImpl.size((dev.timecached.v1.SizeRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.SizeResponse>) responseObserver);
          break;
        case METHODID_TOUCH:
          serviceImpl.touch((dev.timecached.v1.TouchRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.TouchResponse>) responseObserver);
          break;
        case METHODID_APPEND:
          serviceImpl.append((dev.timecached.v1.AppendRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.AppendResponse>) responseObserver);
          break;
        case METHODID_COMBINE:
          serviceImpl.combine((dev.timecached.v1.CombineRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.CombineResponse>) responseObserver);
          break;
        case METHODID_GATHER:
          serviceImpl.gather((dev.timecached.v1.GatherRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.GatherResponse>) responseObserver);
          break;
        case METHODID_EXECUTE:
          serviceImpl.execute((dev.timecached.v1.ExecuteRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.ExecuteResponse>) responseObserver);
          break;
        case METHODID_SCAN:
          serviceImpl.scan((dev.timecached.v1.ScanRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.ScanResponse>) responseObserver);
          break;
        case METHODID_WATCH_EXPIRED:
          serviceImpl.watchExpired((dev.timecached.v1.WatchExpiredRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.WatchExpiredResponse>) responseObserver);
          break;
        case METHODID_CONSUME_EXPIRED:
          serviceImpl.consumeExpired((dev.timecached.v1.ConsumeExpiredRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.ConsumeExpiredResponse>) responseObserver);
          break;
        case METHODID_WATCH_EXPIRING:
          serviceImpl.watchExpiring((dev.timecached.v1.WatchExpiringRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.WatchExpiringResponse>) responseObserver);
          break;
        case METHODID_SETTLE_EXPIRED:
          serviceImpl.settleExpired((dev.timecached.v1.SettleExpiredRequest) request,
              (io.grpc.stub.StreamObserver<dev.timecached.v1.SettleExpiredResponse>) responseObserver);
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
        case METHODID_PIPELINE:
          return (io.grpc.stub.StreamObserver<Req>) serviceImpl.pipeline(
              (io.grpc.stub.StreamObserver<dev.timecached.v1.ExecuteResponse>) responseObserver);
        default:
          throw new AssertionError();
      }
    }
  }

  public static final io.grpc.ServerServiceDefinition bindService(AsyncService service) {
    return io.grpc.ServerServiceDefinition.builder(getServiceDescriptor())
        .addMethod(
          getPutMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.PutRequest,
              dev.timecached.v1.PutResponse>(
                service, METHODID_PUT)))
        .addMethod(
          getGetMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.GetRequest,
              dev.timecached.v1.GetResponse>(
                service, METHODID_GET)))
        .addMethod(
          getRemoveMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.RemoveRequest,
              dev.timecached.v1.RemoveResponse>(
                service, METHODID_REMOVE)))
        .addMethod(
          getContainsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.ContainsRequest,
              dev.timecached.v1.ContainsResponse>(
                service, METHODID_CONTAINS)))
        .addMethod(
          getSizeMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.SizeRequest,
              dev.timecached.v1.SizeResponse>(
                service, METHODID_SIZE)))
        .addMethod(
          getTouchMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.TouchRequest,
              dev.timecached.v1.TouchResponse>(
                service, METHODID_TOUCH)))
        .addMethod(
          getAppendMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.AppendRequest,
              dev.timecached.v1.AppendResponse>(
                service, METHODID_APPEND)))
        .addMethod(
          getCombineMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.CombineRequest,
              dev.timecached.v1.CombineResponse>(
                service, METHODID_COMBINE)))
        .addMethod(
          getGatherMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.GatherRequest,
              dev.timecached.v1.GatherResponse>(
                service, METHODID_GATHER)))
        .addMethod(
          getExecuteMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.ExecuteRequest,
              dev.timecached.v1.ExecuteResponse>(
                service, METHODID_EXECUTE)))
        .addMethod(
          getPipelineMethod(),
          io.grpc.stub.ServerCalls.asyncBidiStreamingCall(
            new MethodHandlers<
              dev.timecached.v1.ExecuteRequest,
              dev.timecached.v1.ExecuteResponse>(
                service, METHODID_PIPELINE)))
        .addMethod(
          getScanMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              dev.timecached.v1.ScanRequest,
              dev.timecached.v1.ScanResponse>(
                service, METHODID_SCAN)))
        .addMethod(
          getWatchExpiredMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              dev.timecached.v1.WatchExpiredRequest,
              dev.timecached.v1.WatchExpiredResponse>(
                service, METHODID_WATCH_EXPIRED)))
        .addMethod(
          getConsumeExpiredMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              dev.timecached.v1.ConsumeExpiredRequest,
              dev.timecached.v1.ConsumeExpiredResponse>(
                service, METHODID_CONSUME_EXPIRED)))
        .addMethod(
          getWatchExpiringMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              dev.timecached.v1.WatchExpiringRequest,
              dev.timecached.v1.WatchExpiringResponse>(
                service, METHODID_WATCH_EXPIRING)))
        .addMethod(
          getSettleExpiredMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              dev.timecached.v1.SettleExpiredRequest,
              dev.timecached.v1.SettleExpiredResponse>(
                service, METHODID_SETTLE_EXPIRED)))
        .build();
  }

  private static abstract class TimeCacheServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    TimeCacheServiceBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return dev.timecached.v1.DataProto.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("TimeCacheService");
    }
  }

  private static final class TimeCacheServiceFileDescriptorSupplier
      extends TimeCacheServiceBaseDescriptorSupplier {
    TimeCacheServiceFileDescriptorSupplier() {}
  }

  private static final class TimeCacheServiceMethodDescriptorSupplier
      extends TimeCacheServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    TimeCacheServiceMethodDescriptorSupplier(java.lang.String methodName) {
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
      synchronized (TimeCacheServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new TimeCacheServiceFileDescriptorSupplier())
              .addMethod(getPutMethod())
              .addMethod(getGetMethod())
              .addMethod(getRemoveMethod())
              .addMethod(getContainsMethod())
              .addMethod(getSizeMethod())
              .addMethod(getTouchMethod())
              .addMethod(getAppendMethod())
              .addMethod(getCombineMethod())
              .addMethod(getGatherMethod())
              .addMethod(getExecuteMethod())
              .addMethod(getPipelineMethod())
              .addMethod(getScanMethod())
              .addMethod(getWatchExpiredMethod())
              .addMethod(getConsumeExpiredMethod())
              .addMethod(getWatchExpiringMethod())
              .addMethod(getSettleExpiredMethod())
              .build();
        }
      }
    }
    return result;
  }
}
