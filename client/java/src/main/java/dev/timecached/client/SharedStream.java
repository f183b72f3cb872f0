package dev.timecached.client;

import dev.timecached.v1.ErrorReason;
import dev.timecached.v1.ExecuteRequest;
import dev.timecached.v1.ExecuteResponse;
import dev.timecached.v1.TimeCacheServiceGrpc;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * The plain calls of one namespace, which callers that do not know each other make at the same
 * time: they share the messages of a Pipeline. An operation is sent at once while no message is under
 * way, or one of few operations; else it goes with the next one. Operations are sent in the order in
 * which they were added, also on the stream that takes the place of one that broke.
 *
 * <p>Answers are read on the transport's thread, which wakes the callers that wait; futures complete
 * on the client's executor. Thread-safe.
 */
final class SharedStream {
  static final int MESSAGES_MAX = 2;

  /** The same of a server that is far, or that stores what it answers: as many as it stores together. */
  private static final int FAR_MESSAGES_MAX = 4;

  /** With fewer operations under way, another message is worth its costs. */
  private static final int FEW_OPERATIONS = 8;

  private static final int MESSAGE_OPERATIONS_MAX = 1024;
  private static final int MESSAGE_BYTES_MAX = 1 << 20;

  /** Most operations, and bytes of them, that wait to be sent. */
  static final int QUEUED_OPERATIONS_MAX = 8192;

  private static final long QUEUED_BYTES_MAX = 8 << 20;
  private static final long CHECK_NANOS_MAX = TimeUnit.SECONDS.toNanos(1);

  /** Operations that were sent together. */
  static final class Message {
    final List<PlainCall<?>> calls = new ArrayList<>();
    private Link link;
    private long answersBefore; // Of the link.
    private long sentAt; // By System.nanoTime().
  }

  /** Whether even the shortest of the last answers took long. */
  static final class AnswerTimes {
    static final long LONG_NANOS = TimeUnit.MILLISECONDS.toNanos(2);
    static final int ANSWERS = 64; // After which the shortest is taken anew.

    private long shortest = Long.MAX_VALUE; // In nanoseconds.
    private int answers;
    private boolean areLong;

    void add(long nanos) {
      shortest = Math.min(shortest, nanos);
      if (++answers == ANSWERS) {
        areLong = shortest >= LONG_NANOS;
        shortest = Long.MAX_VALUE;
        answers = 0;
      }
    }

    boolean areLong() {
      return areLong;
    }
  }

  /** Why operations have no answer. {@code sending}: of the stream; {@code begunAt}: it was. */
  record Failure(
      Rpc.Route from,
      TimecacheException error,
      boolean connected,
      boolean answered, // Another request, before.
      Rpc.Sending sending,
      long begunAt) {
    /** The server ends a stream on an old connection behind an answer, and does no more of it. */
    boolean isReplaced() {
      return answered && error.is(ErrorReason.DRAINING);
    }
  }

  private final SharedStreams streams;
  private final String namespace;

  // Guarded by this.
  private final Deque<PlainCall<?>> queue = new ArrayDeque<>();
  private long queuedBytes;
  private Link link; // To which messages go; null: none.
  private Link left; // One that does not answer, with calls that still may be; null: none.
  private boolean opening; // A link, now or after a pause.
  private boolean closed;
  private int waiting; // Threads, for room.
  private long usedAt = System.nanoTime();
  private long checkAt; // When calls are looked at that may be late.
  private boolean checks;

  SharedStream(SharedStreams streams, String namespace) {
    this.streams = streams;
    this.namespace = namespace;
  }

  /** Waits for room, unless futures complete on this thread. False: it is closed. */
  boolean add(PlainCall<?> call) {
    synchronized (this) {
      awaitRoom(call);
      if (closed) {
        return false;
      }
      queue.addLast(call);
      queuedBytes += call.bytes;
      checkBy(call.deadline);
    }
    send();
    return true;
  }

  private void awaitRoom(PlainCall<?> call) {
    while (!closed
        && !queue.isEmpty()
        && (queue.size() >= QUEUED_OPERATIONS_MAX
            || queuedBytes + call.bytes > QUEUED_BYTES_MAX)
        && !Completions.isCompleting()) {
      long left = call.deadline - System.nanoTime();
      if (left <= 0) {
        throw TimecacheException.notApplied(
            Status.Code.DEADLINE_EXCEEDED, "too many calls wait to be sent");
      }
      ++waiting;
      try {
        TimeUnit.NANOSECONDS.timedWait(this, left);
      } catch (InterruptedException e) {
        throw Rpc.interrupted().withMaybeApplied(false);
      } finally {
        --waiting;
      }
    }
  }

  /** Sends what may be sent now, unless another thread does by the same link. */
  private void send() {
    for (; ; ) {
      Link to;
      Message message;
      synchronized (this) {
        if (opening || queue.isEmpty()) {
          return;
        }
        to = link;
        if (to == null) {
          opening = true;
          message = null;
        } else if (to.isSending || (!to.sent.isEmpty() && !isWorthAnother(to))) {
          return;
        } else {
          to.isSending = true;
          message = seal(to);
        }
      }
      if (message == null) {
        open();
        return;
      }
      to.send(message);
      synchronized (this) {
        to.isSending = false;
      }
    }
  }

  /** Whether a message is sent though others are under way. */
  private boolean isWorthAnother(Link to) {
    if (to.times.areLong()) {
      return to.sent.size() < FAR_MESSAGES_MAX;
    }
    return to.sent.size() < MESSAGES_MAX
        && (to.sent.peekLast().calls.size() < FEW_OPERATIONS
            || queue.size() >= MESSAGE_OPERATIONS_MAX);
  }

  /** Takes the next message off the queue, which is not empty. */
  private Message seal(Link to) {
    Message message = new Message();
    message.link = to;
    message.answersBefore = to.answers;
    message.sentAt = System.nanoTime();
    int bytes = 0;
    do {
      PlainCall<?> call = queue.removeFirst();
      call.message = message;
      message.calls.add(call);
      bytes += call.bytes;
    } while (!queue.isEmpty()
        && message.calls.size() < MESSAGE_OPERATIONS_MAX
        && bytes + queue.peekFirst().bytes <= MESSAGE_BYTES_MAX);
    queuedBytes -= bytes;
    to.sent.addLast(message);
    if (waiting > 0) {
      notifyAll();
    }
    return message;
  }

  private void open() {
    Rpc.Route to = streams.route();
    // An owner is not waited for.
    to.connection()
        .await(streams.owner() == null ? Long.MAX_VALUE : 0)
        .thenAccept(isUp -> begin(to, isUp));
  }

  private void begin(Rpc.Route to, boolean isUp) {
    TimecacheException unreached = isUp ? null : to.connection().unreached();
    Link next = null;
    Message first = null;
    List<PlainCall<?>> refused = new ArrayList<>();
    synchronized (this) {
      opening = false;
      usedAt = System.nanoTime();
      if (queue.isEmpty()) {
        return;
      }
      if (unreached == null) {
        next = new Link(to, isUp);
        link = next;
        first = seal(next);
        next.isSending = true;
      } else {
        refused.addAll(queue);
        queue.clear();
        queuedBytes = 0;
      }
    }
    if (next == null) {
      settle(refused, new Failure(to, unreached, false, false, new Rpc.Sending(), System.nanoTime()));
      return;
    }
    next.start();
    next.send(first);
    synchronized (this) {
      next.isSending = false;
    }
    send();
  }

  /**
   * Repeats what may be repeated, in its order, and fails the others. What an owner has not done goes
   * to the node that others go to, as does what is to be sent.
   */
  private void settle(List<PlainCall<?>> calls, Failure failure) {
    OwnerNode owner = streams.owner();
    boolean isUndone = owner != null && failure.error().isUndone();
    if (owner != null && !failure.isReplaced()) {
      owner.ended(failure.error());
    }
    boolean isUnknown = streams.isUnknown(failure.error());
    boolean isTooLarge = failure.error().isMessageTooLarge();
    long pause = 0;
    List<PlainCall<?>> over = new ArrayList<>();
    List<PlainCall<?>> again = new ArrayList<>();
    synchronized (this) {
      for (PlainCall<?> call : calls) {
        if (call.isDone()) {
          continue;
        }
        if (isUnknown || (isTooLarge && call.isSafe())) {
          call.fallBack();
          over.add(call);
          continue;
        }
        long own = failure.isReplaced() || isUndone ? 0 : call.pauseAfter(failure);
        if (own < 0) {
          call.fail(failure.error());
          over.add(call);
        } else {
          call.message = null;
          again.add(call);
          pause = Math.max(pause, own);
        }
      }
      if (isUnknown) {
        queue.forEach(PlainCall::fallBack);
        over.addAll(takeQueue());
      }
      if (owner != null) {
        again.addAll(takeQueue());
      } else {
        for (int i = again.size() - 1; i >= 0; --i) {
          queue.addFirst(again.get(i));
          queuedBytes += again.get(i).bytes;
        }
      }
      if (link == null && !opening && !queue.isEmpty()) {
        opening = true;
        Delay.after(pause, this::open);
      }
    }
    deliver(over);
    if (owner == null) {
      send();
    } else if (pause > 0) {
      Delay.after(pause, () -> handOver(again));
    } else {
      handOver(again);
    }
  }

  private List<PlainCall<?>> takeQueue() {
    List<PlainCall<?>> all = new ArrayList<>(queue);
    queue.clear();
    queuedBytes = 0;
    if (waiting > 0) {
      notifyAll();
    }
    return all;
  }

  /** Gives calls that were taken off an owner's stream to the one to the node that others go to. */
  private void handOver(List<PlainCall<?>> calls) {
    SharedStream next;
    do {
      next = calls.isEmpty() ? null : streams.endpoints().streams.get(namespace);
    } while (next != null && !next.takeOver(calls, this));
    if (next == null) {
      List<PlainCall<?>> alone = new ArrayList<>();
      synchronized (this) {
        calls.stream().filter(call -> !call.isDone()).forEach(alone::add);
        alone.forEach(call -> call.moveTo(this));
        alone.forEach(PlainCall::fallBack);
      }
      deliver(alone);
    }
  }

  /** Though there may be no room. False: it is closed. */
  private boolean takeOver(List<PlainCall<?>> calls, SharedStream from) {
    synchronized (from) { // An owner's first, and then the other one's.
      synchronized (this) {
        if (closed) {
          return false;
        }
        for (PlainCall<?> call : calls) {
          if (!call.isDone()) {
            call.moveTo(this);
            queue.addLast(call);
            queuedBytes += call.bytes;
            checkBy(call.deadline);
          }
        }
      }
    }
    send();
    return true;
  }

  private void deliver(List<PlainCall<?>> calls) {
    List<PlainCall<?>> later = null;
    for (PlainCall<?> call : calls) {
      if (call.later == null) {
        call.wake();
      } else {
        later = later == null ? new ArrayList<>(calls.size()) : later;
        later.add(call);
      }
    }
    if (later != null) {
      streams.completions().complete(later);
    }
  }

  /**
   * Takes a call back for its caller: one that was sent may have been done. False: it is another
   * stream's.
   */
  boolean abandon(PlainCall<?> call, Status why) {
    Link given = null;
    List<PlainCall<?>> unsent = List.of();
    OwnerNode owner = streams.owner();
    boolean hangs = false;
    synchronized (this) {
      if (!call.isOf(this)) {
        return false;
      }
      if (call.isDone()) {
        return true;
      }
      Message message = call.message;
      if (message == null) {
        if (queue.remove(call)) {
          queuedBytes -= call.bytes;
        }
        call.abandon(why, false);
      } else {
        // Also one that still waits to be written, or with gRPC for a connection: it goes out then.
        call.abandon(why, true);
        hangs =
            why.getCode() == Status.Code.DEADLINE_EXCEEDED
                && message.answersBefore == message.link.answers;
        given = hangs ? leave(message.link, why) : null;
        if (hangs && owner != null) {
          unsent = takeQueue();
        }
      }
    }
    if (hangs && owner != null) {
      owner.ended(TimecacheException.of(why, null));
      handOver(unsent);
    }
    if (given != null) {
      given.cancel(TimecacheException.of(Status.Code.UNAVAILABLE, "the stream does not answer"));
    }
    deliver(List.of(call));
    send();
    return true;
  }

  /**
   * Nothing has come for as long as a call had: what comes now goes by another link. Calls whose
   * time is not up may still be answered by this one, unless the next one is left, too. Returns one
   * that is to be ended.
   */
  private Link leave(Link from, Status why) {
    // Not from an owner: that is left out, and the node that others go to stays as it is.
    streams.endpoints().moveOn(from.route.connection(), TimecacheException.of(why, null));
    if (link != from) {
      return null;
    }
    Link last = left;
    link = null;
    left = from;
    return last;
  }

  /** Ends the calls whose time is up; others are looked at again when theirs is. */
  private void check() {
    List<PlainCall<?>> late = new ArrayList<>();
    synchronized (this) {
      checks = false;
      long now = System.nanoTime();
      List<PlainCall<?>> all = new ArrayList<>(queue);
      for (Link one : new Link[] {link, left}) {
        if (one != null) {
          one.sent.forEach(message -> all.addAll(message.calls));
        }
      }
      for (PlainCall<?> call : all) {
        if (!call.isDone()) {
          if (call.deadline - now <= 0) {
            late.add(call);
          } else {
            checkBy(call.deadline);
          }
        }
      }
    }
    late.forEach(PlainCall::expire);
  }

  private void checkBy(long deadline) {
    if (!checks || deadline - checkAt < 0) {
      checks = true;
      long now = System.nanoTime();
      // A timer holds the client.
      long nanos = Math.min(Math.max(deadline - now, 0), CHECK_NANOS_MAX);
      checkAt = now + nanos;
      Delay.after(nanos, this::check);
    }
  }

  synchronized int queued() {
    return queue.size();
  }

  /** When it was last used; negative: it is in use. */
  synchronized long idleNanos() {
    boolean isBusy =
        opening || !queue.isEmpty() || left != null || (link != null && !link.sent.isEmpty());
    return isBusy ? -1 : System.nanoTime() - usedAt;
  }

  /** Ends it if it is not in use. */
  synchronized boolean close() {
    if (idleNanos() < 0) {
      return false;
    }
    closed = true;
    if (link != null) {
      link.call.halfClose();
    }
    notifyAll();
    return true;
  }

  /** Takes no more, and ends behind what it has. */
  synchronized void retire() {
    if (!close()) {
      closed = true;
      notifyAll();
    }
  }

  /** One stream of gRPC's. */
  private final class Link extends ClientCall.Listener<ExecuteResponse> {
    final Rpc.Route route;
    final boolean connected;
    final Rpc.Sending sending = new Rpc.Sending();
    final long begunAt = System.nanoTime();
    final String id = "plain-" + Long.toHexString(ThreadLocalRandom.current().nextLong());
    final ClientCall<ExecuteRequest, ExecuteResponse> call;

    // Guarded by the shared stream.
    final Deque<Message> sent = new ArrayDeque<>(); // Or about to be.
    // By a thread, of which there is one for each link: answers come in the order of messages. One
    // may be at it still after its link has ended, and another one sends by the next.
    boolean isSending;
    long answers;
    final AnswerTimes times = new AnswerTimes();

    Link(Rpc.Route route, boolean connected) {
      this.route = route;
      this.connected = connected;
      // What is done here is short, and hands futures over.
      CallOptions options = CallOptions.DEFAULT.withExecutor(Runnable::run);
      call =
          route
              .channel()
              .newCall(TimeCacheServiceGrpc.getPipelineMethod(), sending.in(options));
    }

    void start() {
      Metadata headers = new Metadata();
      headers.put(TimecacheClient.REQUEST_ID, id);
      try {
        call.start(this, headers);
        call.request(Integer.MAX_VALUE); // Of what is under way.
      } catch (IllegalStateException e) {
        // It was cancelled, which has ended it.
      }
    }

    void send(Message message) {
      ExecuteRequest.Builder request =
          ExecuteRequest.newBuilder().setNamespace(namespace).setIndependent(true);
      message.calls.forEach(one -> request.addOperations(one.proto));
      try {
        call.sendMessage(request.build());
      } catch (IllegalStateException e) {
        // It was cancelled: its end says what becomes of the message.
      }
    }

    @Override
    public void onMessage(ExecuteResponse response) {
      Message message;
      List<PlainCall<?>> refused = null; // Of an owner that is another one now.
      synchronized (SharedStream.this) {
        ++answers;
        message = sent.peekFirst();
        if (message == null || message.calls.size() != response.getResultsCount()) {
          message = null;
        } else {
          sent.removeFirst();
          for (int i = 0; i < message.calls.size(); ++i) {
            if (!message.calls.get(i).answer(response.getResults(i), id)) {
              refused = refused == null ? new ArrayList<>() : refused;
              refused.add(message.calls.get(i));
            }
          }
          if (refused != null) {
            refused.forEach(call -> call.message = null);
            message.calls.removeAll(refused);
          }
          if (closed && sent.isEmpty() && (link != this || queue.isEmpty())) {
            call.halfClose();
          }
          usedAt = System.nanoTime();
          times.add(usedAt - message.sentAt);
        }
      }
      if (message == null) {
        cancel(TimecacheException.mismatch("operations"));
        return;
      }
      SharedStream.this.send();
      deliver(message.calls);
      if (streams.owner() != null) {
        streams.owner().answered();
      }
      if (refused != null) {
        streams.owner().disowned();
        handOver(refused);
      }
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      TimecacheException why =
          switch (status.getCode()) {
            case OK -> TimecacheException.of(Status.Code.UNAVAILABLE, "the server is stopping");
            // A proxy's: it is not the deadline of these calls.
            case DEADLINE_EXCEEDED ->
                TimecacheException.of(Status.Code.UNAVAILABLE, "the stream was ended");
            default -> TimecacheException.of(status, trailers);
          };
      if (!sending.hasBegun) {
        why.withMaybeApplied(false);
      }
      boolean isClosed = streams.endpoints().current().isShutdown() && why.isConnectionLost();
      end(isClosed ? TimecacheException.closed(why.maybeApplied()) : why);
    }

    void cancel(TimecacheException why) {
      end(why);
      call.cancel(why.description(), null);
    }

    private void end(TimecacheException why) {
      List<PlainCall<?>> calls = new ArrayList<>();
      synchronized (SharedStream.this) {
        sent.forEach(message -> calls.addAll(message.calls));
        sent.clear();
        link = link == this ? null : link;
        left = left == this ? null : left;
      }
      boolean wasUp = connected || sending.hasBegun;
      settle(calls, new Failure(route, why, wasUp, answers > 0, sending, begunAt));
    }
  }
}
