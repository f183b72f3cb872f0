package dev.timecached.client;

/**
 * Bounds of a {@link Pipeline}. What is in flight has been added, and its future is not complete.
 *
 * @param batchOperationsMax most operations of one request: 1 to 4,096
 * @param batchBytesMax most bytes of them; a larger operation goes alone
 * @param requestsInFlightMax most requests that were sent and are not answered
 * @param operationsInFlightMax most operations in flight
 * @param bytesInFlightMax most bytes of them in flight; a larger one goes alone
 */
public record PipelineOptions(
    int batchOperationsMax,
    int batchBytesMax,
    int requestsInFlightMax,
    int operationsInFlightMax,
    long bytesInFlightMax) {
  /** 256 operations and 1 MiB a request; 16 requests, 8,192 operations and 8 MiB in flight. */
  public static final PipelineOptions DEFAULT =
      new PipelineOptions(256, 1 << 20, 16, 8192, 8 << 20);

  /** Throws IllegalArgumentException for a bound that leaves no room, or too many for a request. */
  public PipelineOptions {
    if (batchOperationsMax < 1 || batchOperationsMax > 4096) {
      throw new IllegalArgumentException("batchOperationsMax: 1 to 4,096");
    }
    if (batchBytesMax < 1
        || requestsInFlightMax < 1
        || operationsInFlightMax < 1
        || bytesInFlightMax < 1) {
      throw new IllegalArgumentException("the bounds of a pipeline: at least 1");
    }
  }
}
