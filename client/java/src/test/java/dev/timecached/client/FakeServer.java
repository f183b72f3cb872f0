package dev.timecached.client;

import dev.timecached.v1.ConsumeExpiredRequest;
import dev.timecached.v1.ConsumeExpiredResponse;
import dev.timecached.v1.ExecuteRequest;
import dev.timecached.v1.ExecuteResponse;
import dev.timecached.v1.SettleExpiredRequest;
import dev.timecached.v1.SettleExpiredResponse;
import dev.timecached.v1.TimeCacheServiceGrpc;
import dev.timecached.v1.WatchExpiredRequest;
import dev.timecached.v1.WatchExpiredResponse;
import io.grpc.Grpc;
import io.grpc.InsecureServerCredentials;
import io.grpc.Server;
import io.grpc.Status;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** A server that answers when a test says so: for what is hard to have from a real one. */
final class FakeServer extends TimeCacheServiceGrpc.TimeCacheServiceImplBase
    implements AutoCloseable {
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

  final BlockingQueue<StreamObserver<ConsumeExpiredResponse>> members = new LinkedBlockingQueue<>();
  final BlockingQueue<ConsumeExpiredRequest> consumes = new LinkedBlockingQueue<>();
  final BlockingQueue<SettleCall> settles = new LinkedBlockingQueue<>();
  final CountDownLatch pipelineCancelled = new CountDownLatch(1);
  private final Server server;

  FakeServer() {
    try {
      server =
          Grpc.newServerBuilderForPort(0, InsecureServerCredentials.create())
              .addService(this)
              .build()
              .start();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  TimecacheClientBuilder builder() {
    return TimecacheClient.builder("127.0.0.1:" + server.getPort());
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
      public void onNext(ExecuteRequest request) {}

      @Override
      public void onError(Throwable why) {}

      @Override
      public void onCompleted() {}
    };
  }
}
