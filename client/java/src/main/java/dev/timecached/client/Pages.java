package dev.timecached.client;

import io.grpc.CallOptions;
import io.grpc.Context;
import io.grpc.MethodDescriptor;
import io.grpc.stub.ClientCalls;
import java.util.Iterator;

/** What a server streams in answer to one call, and its end. For one thread. */
final class Pages<A> implements Iterator<A>, AutoCloseable {
  private final Context.CancellableContext context = Context.current().withCancellation();
  private final Rpc rpc;
  private final Rpc.Sending sending = new Rpc.Sending();
  private final Iterator<A> pages;

  <Q> Pages(Rpc rpc, MethodDescriptor<Q, A> method, Q request) {
    Rpc.await(rpc.connection.await());
    this.rpc = rpc;
    Context previous = context.attach();
    try {
      pages =
          ClientCalls.blockingServerStreamingCall(
              rpc.channel, method, sending.in(CallOptions.DEFAULT), request);
    } finally {
      context.detach(previous);
    }
  }

  @Override
  public boolean hasNext() {
    try {
      return pages.hasNext();
    } catch (RuntimeException e) {
      throw rpc.explain(e, sending).rethrown();
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
