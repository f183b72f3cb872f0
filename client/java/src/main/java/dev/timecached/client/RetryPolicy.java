package dev.timecached.client;

import java.time.Duration;

/**
 * When a call that failed is tried again.
 *
 * <p>Only one that is safe to repeat, and only where its connection was lost under way or the
 * server is stopping; always within the call's timeout. Safe are the calls that change nothing, get
 * and touch, which done twice leave the same entry, and what has an idempotencyId. Put, remove,
 * append, add, xor, gather and a settlement are not: what failed may have been done. {@link
 * TimecacheClient#repeatable()} has them repeated, too. A batch is safe, and a pipeline goes on
 * after a break, where all of their operations are.
 *
 * @param maxAttempts in all; 1: none is repeated
 * @param minPause the first pause; each is twice the one before, shortened at random by up to half
 * @param maxPause the longest pause
 */
public record RetryPolicy(int maxAttempts, Duration minPause, Duration maxPause) {
  /** Three attempts, with pauses from 50 ms to 1 s. */
  public static final RetryPolicy DEFAULT =
      new RetryPolicy(3, Duration.ofMillis(50), Duration.ofSeconds(1));

  /** One attempt. */
  public static final RetryPolicy NONE =
      new RetryPolicy(1, Duration.ofMillis(50), Duration.ofSeconds(1));
}
