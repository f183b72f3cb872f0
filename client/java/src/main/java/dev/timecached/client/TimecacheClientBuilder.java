package dev.timecached.client;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ChannelCredentials;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/** Makes a {@link TimecacheClient}. */
public final class TimecacheClientBuilder {
  private final List<String> addresses;
  private String namespace = "default";
  private Duration timeout = Duration.ofSeconds(5);
  private RetryPolicy retry = RetryPolicy.DEFAULT;
  private boolean tls;
  private Path caFile;
  private Path certificateFile;
  private Path keyFile;
  private String serverName;
  private Supplier<String> token;
  private TokenFile tokenFile; // Null: none.
  private boolean allowPlaintextToken;
  private Executor executor;
  private Tracing tracing; // Null: none.
  private boolean traceEntries;
  private boolean batching = true;
  private boolean ownerRouting;
  private LongSupplier clock = System::nanoTime;

  TimecacheClientBuilder(String address) {
    addresses = Endpoints.split(address);
  }

  /** The namespace of all calls. "default" unless given. */
  public TimecacheClientBuilder namespace(String namespace) {
    this.namespace = namespace;
    return this;
  }

  /**
   * Longest duration of one call with all its attempts; past it the call ends with
   * DEADLINE_EXCEEDED, and whether it had an effect is unknown. 5 s unless given.
   */
  public TimecacheClientBuilder timeout(Duration timeout) {
    this.timeout = timeout;
    return this;
  }

  /** Which calls are tried again, and how often. {@link RetryPolicy#DEFAULT} unless given. */
  public TimecacheClientBuilder retry(RetryPolicy retry) {
    this.retry = retry;
    return this;
  }

  /** TLS, with the system's roots. What follows about certificates asks for TLS, too. */
  public TimecacheClientBuilder tls() {
    tls = true;
    return this;
  }

  /**
   * PEM file of the roots that the server's certificate must lead to. It may be replaced: it is
   * read by {@link #build}, and again for each connection.
   */
  public TimecacheClientBuilder caFile(Path file) {
    caFile = file;
    return tls();
  }

  /**
   * PEM files of the client's own certificate, with its chain, and its private key (PKCS 8), for
   * mutual TLS. They may be replaced, as the roots may; a certificate whose key is not there yet
   * waits for it.
   */
  public TimecacheClientBuilder certificate(Path certificateFile, Path keyFile) {
    this.certificateFile = certificateFile;
    this.keyFile = keyFile;
    return tls();
  }

  /** The name that the server's certificate must have. The address's host unless given. */
  public TimecacheClientBuilder serverName(String name) {
    serverName = name;
    return tls();
  }

  /** A bearer token, which each call shows to the server. */
  public TimecacheClientBuilder token(String token) {
    String checked = TokenFile.check(token, "token");
    this.token = () -> checked;
    tokenFile = null;
    return this;
  }

  /**
   * A file that holds such a token. It may be replaced: it is read again every 10 s, and when the
   * server refuses the token; what is open then goes on, as {@link Watcher} says.
   */
  public TimecacheClientBuilder tokenFile(Path file) {
    tokenFile = new TokenFile(file);
    token = tokenFile;
    return this;
  }

  /** Show the token over plain text also to another machine: for a proxy that encrypts. */
  public TimecacheClientBuilder allowPlaintextToken() {
    allowPlaintextToken = true;
    return this;
  }

  /**
   * Makes spans of calls and of workers' handlers; none unless given. For OpenTelemetry: {@code
   * OpenTelemetryTracing.of(openTelemetry)}.
   */
  public TimecacheClientBuilder tracing(Tracing tracing) {
    this.tracing = tracing;
    return this;
  }

  /**
   * Whatever put, append, add, xor and gather store keeps the traceparent of its call, so that the
   * span of what handles its event links to it: 27 B more of an entry. {@link
   * PutOptions#traceEntry} says so for a single call.
   */
  public TimecacheClientBuilder traceEntries() {
    traceEntries = true;
    return this;
  }

  /** Whether plain calls share a stream: see {@link TimecacheClient#withBatching}. True unless given. */
  public TimecacheClientBuilder batching(boolean batching) {
    this.batching = batching;
    return this;
  }

  /**
   * Whether calls on keys go to the nodes that own them: of a cluster that shares the ownership
   * ({@code cluster.forward_calls}), where any other node has the owner do it, which costs both
   * together some four times the CPU. For clients that reach the nodes themselves, by their {@code
   * cluster.advertise}, not by way of a load balancer alone. False unless given.
   *
   * <p>Those of {@link TimecacheClient#call}, put to gather, and their futures go there, also without
   * {@link #batching}; batches by parts, one for each owner, at the same time. An {@link Batch#atomic}
   * one does if all of its keys are in one partition. All else goes to the node that calls go to
   * without this, by the addresses that the client was given.
   *
   * <p>Owners are asked for by GetOwners, in the background, when a namespace is used: for the first
   * time, then every 5 s, and when an owner is not reached or is one no more. Until they are known, and
   * where they are wrong or not reached, calls go as without this: that is no error, and takes none of
   * the attempts of {@link RetryPolicy}. An owner that is not reached is left out for 1 s, then for
   * twice as long each time, up to 30 s; one that would get a token in plain text against {@link
   * #allowPlaintextToken} is not called. A server that is no such node, is older than this, or
   * permits nothing on the namespace, is asked again after 60 s.
   *
   * <p>Costs a connection to each node, up to 64, with the TLS, token and options of this client, and
   * for each namespace a stream to each; on the way of a call a look-up without locks, which reads the
   * key once. At most 1,000 namespaces are known; the one that was not used for the longest time is
   * forgotten. Calls that are made at the same time keep their order only for keys of one owner, while
   * that stays the same.
   */
  public TimecacheClientBuilder ownerRouting(boolean ownerRouting) {
    this.ownerRouting = ownerRouting;
    return this;
  }

  /** For tests: by which owners are asked for and left out, in nanoseconds. */
  TimecacheClientBuilder ownerClock(LongSupplier clock) {
    this.clock = clock;
    return this;
  }

  /**
   * Where futures complete, those of one message in one task, which another takes over where what
   * they call does not return soon. A pool of daemon threads, shared in the process, unless given.
   */
  public TimecacheClientBuilder executor(Executor executor) {
    this.executor = executor;
    return this;
  }

  /**
   * Makes the client, which begins to connect, and to load what calls need, in the background: a
   * JVM's first call costs more than a second without. {@link TimecacheClient#isServing} waits for
   * that. That the server is not there is told by the first call.
   *
   * @throws UncheckedIOException for a file that cannot be read
   * @throws IllegalArgumentException for a file that holds something else; for a token that would
   *     go over plain text to another machine
   */
  public TimecacheClient build() {
    addresses.forEach(this::checkToken);
    CertificateFiles files = tls ? new CertificateFiles(caFile, certificateFile, keyFile) : null;
    ChannelCredentials credentials =
        tls ? files.credentials() : InsecureChannelCredentials.create();
    Runnable beforeConnecting = tls ? files::refresh : () -> {};
    BiFunction<String, Boolean, Connection> connect =
        (address, isOneOfSeveral) ->
            new Connection(
                makeChannel(address, credentials),
                address,
                beforeConnecting,
                tokenFile,
                isOneOfSeveral);
    Endpoints endpoints =
        new Endpoints(
            addresses, address -> connect.apply(address, addresses.size() > 1), executor);
    Rpc rpc =
        new Rpc(endpoints, new Metadata(), timeout, retry, false, tracing, traceEntries, batching);
    if (ownerRouting) {
      endpoints.callOwners(
          new Owners(
              endpoints,
              Owners.question(rpc.withoutTracing().withTimeout(Owners.ASK_TIMEOUT)),
              address -> connect.apply(address, true),
              clock));
    }
    TimecacheClient client = new TimecacheClient(rpc, namespace, endpoints);
    Thread warmUp = new Thread(client::warmUp, "timecache-warm-up");
    warmUp.setDaemon(true);
    warmUp.start();
    return client;
  }

  private void checkToken(String address) {
    if (token != null && !tls && !allowPlaintextToken && !isLocal(address)) {
      throw new IllegalArgumentException(
          "a token is not sent to " + address + " in plain text: use TLS, or allow it explicitly");
    }
  }

  private ManagedChannel makeChannel(String address, ChannelCredentials credentials) {
    checkToken(address);
    ManagedChannelBuilder<?> builder =
        Grpc.newChannelBuilder(address, credentials)
            .maxInboundMessageSize(Rpc.MAX_MESSAGE_BYTES)
            // A server that is gone without a word is noticed after their sum.
            .keepAliveTime(30, TimeUnit.SECONDS)
            .keepAliveTimeout(10, TimeUnit.SECONDS)
            .userAgent("timecache-java");
    if (serverName != null) {
      builder.overrideAuthority(serverName);
    }
    if (executor != null) {
      builder.executor(executor);
    }
    if (token != null) {
      builder.intercept(new TokenSender(token, tokenFile));
    }
    return builder.build();
  }

  private static boolean isLocal(String address) {
    return address.startsWith("unix:")
        || address.matches("(localhost|127\\.[0-9.]+|\\[::1])(:[0-9]+)?");
  }

  private record TokenSender(Supplier<String> token, TokenFile file) implements ClientInterceptor {
    private static final Metadata.Key<String> AUTHORIZATION =
        Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

    @Override
    public <Q, A> ClientCall<Q, A> interceptCall(
        MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
      return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
        @Override
        public void start(Listener<A> listener, Metadata headers) {
          headers.put(AUTHORIZATION, "Bearer " + token.get());
          super.start(file == null ? listener : rereading(listener), headers);
        }
      };
    }

    /** Reads the file again where the token was refused, before that is told. */
    private <A> ClientCall.Listener<A> rereading(ClientCall.Listener<A> listener) {
      return new SimpleForwardingClientCallListener<>(listener) {
        @Override
        public void onClose(Status status, Metadata trailers) {
          if (status.getCode() == Status.Code.UNAUTHENTICATED) {
            file.reread();
          }
          super.onClose(status, trailers);
        }
      };
    }
  }
}
