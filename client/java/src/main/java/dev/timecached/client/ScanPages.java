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
    pages = open();
  }

  private Pages<ScanResponse> open() {
    return new Pages<>(rpc, TimeCacheServiceGrpc.getScanMethod(), request);
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
    close();
    if (isPositionRefused(error)) {
      throw broke == null ? error : broke;
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
      throw error;
    }
    pages = null;
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
  }
}
