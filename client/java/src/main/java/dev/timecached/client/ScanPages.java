package dev.timecached.client;

import dev.timecached.v1.ErrorReason;
import dev.timecached.v1.ScanRequest;
import dev.timecached.v1.ScanResponse;
import dev.timecached.v1.TimeCacheServiceGrpc;
import io.grpc.Status;
import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * The pages of a scan, each once. Goes on behind the last one where the connection breaks, or the
 * server ends a scan that is read too slowly. For one thread.
 */
final class ScanPages implements Iterator<ScanResponse>, AutoCloseable {
  private final Rpc rpc;
  private final Traced traced;
  private ScanRequest request; // With the position of the last page.
  private Pages<ScanResponse> pages; // Null: another stream is to be opened.
  private ScanResponse ahead; // That was not taken.
  private boolean hasBegun; // With no server there it fails as other calls do.
  private boolean isResumable = true; // Not by a server of an earlier version.
  private int attempts; // Since the last page.
  private Backoff backoff;
  private TimecacheException broke; // Null: nothing has.
  private boolean hasEnded;

  ScanPages(Rpc rpc, ScanRequest request) {
    this.rpc = rpc;
    this.request = request;
    backoff = rpc.backoff();
    traced = rpc.trace(TimeCacheServiceGrpc.getScanMethod(), request);
    try {
      pages = open();
    } catch (RuntimeException e) {
      traced.end(e);
      throw e;
    }
  }

  private Pages<ScanResponse> open() {
    return new Pages<>(rpc, TimeCacheServiceGrpc.getScanMethod(), request, traced::over);
  }

  @Override
  public boolean hasNext() {
    while (ahead == null && !hasEnded) {
      try {
        pages = pages == null ? open() : pages;
        if (pages.hasNext()) {
          accept(pages.next());
        } else {
          hasEnded = true;
          traced.end(null);
        }
      } catch (TimecacheException e) {
        goOnAfter(e);
      }
    }
    return ahead != null;
  }

  private void accept(ScanResponse page) {
    ahead = page;
    request = request.toBuilder().setPosition(page.getPosition()).build();
    hasBegun = true;
    isResumable = !page.getPosition().isEmpty();
    attempts = 0;
    backoff = rpc.backoff();
  }

  private void goOnAfter(TimecacheException error) {
    if (pages != null) {
      pages.close();
    }
    if (isPositionRefused(error)) {
      TimecacheException why = broke == null ? error : broke;
      traced.end(why);
      throw why;
    }
    broke = error;
    hasBegun |= error.maybeApplied();
    // The server ends a scan that is not read for a while so, without details as nobody reads them.
    boolean isBreak =
        error.isConnectionLost()
            || error.code() == Status.Code.DEADLINE_EXCEEDED
            || error.is(ErrorReason.UNREAD_RESPONSES);
    if (!isBreak
        || !hasBegun
        || !isResumable
        || ++attempts >= rpc.maxAttempts()
        || rpc.connection().isShutdown()
        || Thread.currentThread().isInterrupted()) {
      hasEnded = true;
      traced.end(error);
      throw error;
    }
    pages = null;
    traced.retry(error);
    Rpc.sleep(backoff.nextNanos());
  }

  /** It was of a server that has stopped. */
  private static boolean isPositionRefused(TimecacheException error) {
    return error.code() == Status.Code.INVALID_ARGUMENT
        && error.fieldViolations().stream().anyMatch(wrong -> wrong.field().equals("position"));
  }

  @Override
  public ScanResponse next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    ScanResponse page = ahead;
    ahead = null;
    return page;
  }

  @Override
  public void close() {
    if (pages != null) {
      pages.close();
    }
    traced.end(null);
  }
}
