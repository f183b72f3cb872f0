package dev.timecached.client;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import dev.timecached.v1.ErrorReason;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.protobuf.StatusProto;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import javax.net.ssl.SSLException;

/**
 * Why a call failed.
 *
 * <p>An error of the server has a {@linkplain #reason() reason}, which {@link ErrorReason} lists.
 * One without is gRPC's own: no connection, the deadline passed, the call was cancelled. {@link
 * #maybeApplied} says whether the call may have been done all the same.
 */
public final class TimecacheException extends RuntimeException {
  private static final long serialVersionUID = 1;
  private static final Metadata.Key<String> REQUEST_ID =
      Metadata.Key.of("x-request-id", Metadata.ASCII_STRING_MARSHALLER);

  /**
   * A field that the server refused.
   *
   * @param field its path in the request, as {@code operations[3].put.key}
   * @param description what is wrong with it
   */
  public record FieldViolation(String field, String description) implements java.io.Serializable {}

  /** With these gRPC, or a proxy, ends a call of which it does not know what the server did. */
  private static final Set<Status.Code> UNCERTAIN =
      Set.of(
          Status.Code.CANCELLED,
          Status.Code.UNKNOWN,
          Status.Code.DEADLINE_EXCEEDED,
          Status.Code.RESOURCE_EXHAUSTED,
          Status.Code.ABORTED,
          Status.Code.INTERNAL,
          Status.Code.UNAVAILABLE,
          Status.Code.DATA_LOSS);

  private final Status.Code code;
  private final String description;
  private final String reason;
  private final Map<String, String> metadata;
  private final ArrayList<FieldViolation> fieldViolations;
  private final Duration retryDelay;
  private final String requestId;
  private boolean maybeApplied; // Set before it is told.

  private TimecacheException(
      Status.Code code, String description, List<Any> details, String requestId, Throwable cause) {
    super(message(code, reason(details), description), cause);
    this.code = code;
    this.description = description;
    this.requestId = requestId;
    reason = reason(details);
    // The server refuses before it does anything, unless it has lost the ownership meanwhile.
    maybeApplied = reason == null ? UNCERTAIN.contains(code) : reason.equals("OWNERSHIP_LOST");
    metadata =
        Map.copyOf(
            find(details, ErrorInfo.class, ErrorInfo.getDefaultInstance()).getMetadataMap());
    fieldViolations = new ArrayList<>();
    for (BadRequest.FieldViolation violation :
        find(details, BadRequest.class, BadRequest.getDefaultInstance()).getFieldViolationsList()) {
      fieldViolations.add(new FieldViolation(violation.getField(), violation.getDescription()));
    }
    RetryInfo retry = find(details, RetryInfo.class, null);
    retryDelay = retry == null ? null : Times.fromProto(retry.getRetryDelay());
  }

  /** An error of no call, which changed nothing: for what is built on the client, and for mocks. */
  public static TimecacheException notApplied(Status.Code code, String description) {
    return of(code, description).withMaybeApplied(false);
  }

  static TimecacheException of(Status.Code code, String description) {
    return new TimecacheException(code, description, List.of(), null, null);
  }

  /** Of a call that ended so; the trailers may be null. */
  static TimecacheException of(Status status, Metadata trailers) {
    List<Any> details = List.of();
    String requestId = null;
    if (trailers != null) {
      requestId = trailers.get(REQUEST_ID);
      details = details(status, trailers);
    }
    return new TimecacheException(
        status.getCode(), describe(status), details, requestId, status.getCause());
  }

  /** None where they are garbled, or a proxy's status is another than theirs: it failed anyhow. */
  private static List<Any> details(Status status, Metadata trailers) {
    try {
      return StatusProto.fromStatusAndTrailers(status, trailers).getDetailsList();
    } catch (IllegalArgumentException e) {
      return List.of();
    }
  }

  private static String describe(Status status) {
    String description = status.getDescription() == null ? "" : status.getDescription();
    // Of a handshake gRPC tells how its pipeline looks.
    description = description.split("\nChannel Pipeline:", 2)[0];
    if (description.equals("Network closed for unknown reason")) {
      return description + ": the server may speak TLS, or refuse the client's certificate";
    }
    Throwable cause = status.getCause();
    if (cause == null) {
      return description;
    }
    return description + (description.isEmpty() ? "" : ": ") + reasonOf(cause);
  }

  /** Its message; of one without a message its name. TLS has the reason in the innermost cause. */
  private static String reasonOf(Throwable cause) {
    if (cause.getClass().getSimpleName().equals("NotSslRecordException")) {
      return "this client speaks TLS, and the server does not";
    }
    while (cause.getCause() != null && cause instanceof SSLException) {
      cause = cause.getCause();
    }
    return cause.getMessage() == null ? cause.toString() : cause.getMessage();
  }

  /** Of one operation or settlement. */
  static TimecacheException of(com.google.rpc.Status status) {
    return of(status, (String) null);
  }

  /** Of an operation under this id in the server's log. Null: it is not known. */
  static TimecacheException of(com.google.rpc.Status status, String requestId) {
    return new TimecacheException(
        Status.fromCodeValue(status.getCode()).getCode(),
        status.getMessage(),
        status.getDetailsList(),
        requestId,
        null);
  }

  /** What a call that fails throws: {@code error} itself if it is one, else about it. */
  static TimecacheException of(Throwable error) {
    if (error instanceof TimecacheException known) {
      return known;
    }
    return of(Status.fromThrowable(error), Status.trailersFromThrowable(error));
  }

  /** An answer that does not fit its request. */
  static TimecacheException mismatch(String what) {
    return of(
        Status.Code.INTERNAL,
        "another number of results than there were " + what + ": is the server of this version?");
  }

  /** Of a client that was closed; the call may have been sent before. */
  static TimecacheException closed(boolean maybeApplied) {
    return of(Status.Code.CANCELLED, "the client is closed").withMaybeApplied(maybeApplied);
  }

  /** The same error with the stack of the thread that is told, and this one as its cause. */
  TimecacheException rethrown() {
    return new TimecacheException(this, description, requestId);
  }

  /** The same of a call with an id of its own. Null: without one. */
  TimecacheException rethrown(String requestId) {
    return new TimecacheException(this, description, requestId);
  }

  /** The same error, about something in particular, with this one as its cause. */
  TimecacheException about(String what) {
    return new TimecacheException(this, what + ": " + description, requestId);
  }

  /** This error, which nobody was told yet. */
  TimecacheException withMaybeApplied(boolean value) {
    maybeApplied = value;
    return this;
  }

  private TimecacheException(TimecacheException other, String description, String requestId) {
    super(message(other.code, other.reason, description), other);
    code = other.code;
    this.description = description;
    maybeApplied = other.maybeApplied;
    reason = other.reason;
    metadata = other.metadata;
    fieldViolations = other.fieldViolations;
    retryDelay = other.retryDelay;
    this.requestId = requestId;
  }

  private static String message(Status.Code code, String reason, String description) {
    return code
        + (reason == null ? "" : " (" + reason + ")")
        + (description.isEmpty() ? "" : ": " + description);
  }

  private static String reason(List<Any> details) {
    String reason =
        find(details, ErrorInfo.class, ErrorInfo.getDefaultInstance()).getReason();
    return reason.isEmpty() ? null : reason;
  }

  private static <T extends com.google.protobuf.Message> T find(
      List<Any> details, Class<T> type, T none) {
    for (Any detail : details) {
      if (detail.is(type)) {
        try {
          return detail.unpack(type);
        } catch (InvalidProtocolBufferException e) {
          return none;
        }
      }
    }
    return none;
  }

  /** What kind of error it is. */
  public Status.Code code() {
    return code;
  }

  /** The server's description, or gRPC's, without code and reason. May be empty. */
  public String description() {
    return description;
  }

  /**
   * Why the server refused: the name of an {@link ErrorReason}, or one that only a later server
   * has. Empty if the error is not the server's own.
   */
  public Optional<String> reason() {
    return Optional.ofNullable(reason);
  }

  /** Whether the server refused for this reason. */
  public boolean is(ErrorReason reason) {
    return reason.name().equals(this.reason);
  }

  /** What else the server says about the reason, as which {@code namespace}. */
  public Map<String, String> metadata() {
    return metadata;
  }

  /** The fields that an INVALID_ARGUMENT is about. */
  public List<FieldViolation> fieldViolations() {
    return List.copyOf(fieldViolations);
  }

  /** How long the server says to wait before the call is tried again. */
  public Optional<Duration> retryDelay() {
    return Optional.ofNullable(retryDelay);
  }

  /** The id under which the server's log has the call: the caller's, or one of the server's. */
  public Optional<String> requestId() {
    return Optional.ofNullable(requestId);
  }

  /**
   * Whether the request, or an earlier attempt of it, may have reached the server and been done,
   * although this error says nothing of it: the connection broke, the time was up, the call was
   * cancelled. False: it was not done, as the server refused it or there was no connection.
   */
  public boolean maybeApplied() {
    return maybeApplied;
  }

  /**
   * Whether the server is stopping, or there is no connection or it, or the stream, broke: the same
   * again may succeed. With RESOURCE_EXHAUSTED a server or proxy resets streams to be left in peace
   * for a while.
   */
  public boolean isConnectionLost() {
    return switch (code) {
      case UNAVAILABLE -> true;
      case INTERNAL, UNKNOWN, CANCELLED -> reason == null;
      case RESOURCE_EXHAUSTED -> reason == null && !isMessageTooLarge();
      default -> false;
    };
  }

  /** Whether it is certain that the node of the call has done nothing, and another one may. */
  boolean isUndone() {
    return isConnectionLost() && !maybeApplied;
  }

  /**
   * Whether this client refused a message because it is larger than its channel takes: that of
   * {@link TimecacheClient#of} with a limit of its own.
   */
  boolean isMessageTooLarge() {
    return code == Status.Code.RESOURCE_EXHAUSTED
        && reason == null
        && description.contains("exceeds maximum size");
  }
}
