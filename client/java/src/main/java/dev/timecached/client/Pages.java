package dev.timecached.client;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.Context;
import io.grpc.MethodDescriptor;
import io.grpc.stub.ClientCalls;
import java.util.Iterator;
import java.util.function.Function;

/**
 * What a server streams in answer to one call, and its end. Until the first answer the call is made
 * elsewhere where that may do better. For one thread.
 */
final class Pages<A> implements Iterator<A>, AutoCloseable {
  private final Context.CancellableContext context = Context.current().withCancellation();
  private final Rpc rpc;
  private final Function<CallOptions, Iterator<A>> begin;
  private final Endpoints.Failover failover;
  private Rpc.Route route;
  private Rpc.Sending sending;
  private TimecacheException unreached; // Null: the call was made.
  private Iterator<A> pages;
  private boolean hasBegun;

  <Q> Pages(Rpc rpc, MethodDescriptor<Q, A> method, Q request) {
    this(rpc, method, request, Function.identity());
  }

  /** {@code over}: makes the channel that it is asked by. */
  <Q> Pages(
      Rpc rpc, MethodDescriptor<Q, A> method, Q request, Function<Channel, Channel> over) {
    this.rpc = rpc;
    failover = rpc.endpoints.failover();
    begin =
        options ->
            ClientCalls.blockingServerStreamingCall(
                over.apply(route.channel()), method, options, request);
    open();
  }

  private void open() {
    route = rpc.route();
    boolean isUp = Rpc.await(route.connection().await());
    sending = new Rpc.Sending();
    unreached = isUp ? null : route.connection().unreached();
    if (unreached != null) {
      return;
    }
    Context previous = context.attach();
    try {
      pages = begin.apply(sending.in(CallOptions.DEFAULT));
    } finally {
      context.detach(previous);
    }
  }

  @Override
  public boolean hasNext() {
    for (; ; ) {
      try {
        if (unreached != null) {
          throw unreached;
        }
        boolean hasNext = pages.hasNext();
        hasBegun = true;
        return hasNext;
      } catch (RuntimeException e) {
        TimecacheException error = rpc.explain(e, sending);
        rpc.endpoints.moveOn(route.connection(), error);
        boolean isOver =
            hasBegun
                || rpc.connection().isShutdown()
                || context.isCancelled()
                || Thread.currentThread().isInterrupted();
        long pause = isOver ? -1 : failover.pauseAfter(error, error.isConnectionLost());
        if (pause < 0) {
          throw error.rethrown();
        }
        Rpc.sleep(pause);
        open();
      }
    }
  }

  @Override
  public A next() {
    return pages.next();
  }

  @Override
  public void close() {
    context.cancel(null);
  }
}
