// Pauses and limits. Internal.

import { setTimeout as sleep } from 'node:timers/promises';

/** What a timer takes: one that is set to more than 2^31 - 1 ms fires at once. */
export function timerMs(ms: number): number {
  return Math.min(ms, 2 ** 31 - 1);
}

/** Pauses that double, each shortened at random by up to half: clients do not come back all at once. */
export class Backoff {
  #pause: number;

  constructor(
    private readonly min: number,
    private readonly max: number,
  ) {
    this.#pause = min;
  }

  next(): number {
    const pause = this.#pause * (0.5 + Math.random() / 2);
    this.#pause = Math.min(this.#pause * 2, this.max);
    return pause;
  }

  reset(): void {
    this.#pause = this.min;
  }
}

/** Sleeps; ends with the signal's reason if it aborts. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await sleep(timerMs(ms), undefined, signal ? { signal } : {});
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

/** What {@link withLimit} gives where the promise has not come in time. */
export const LATE = Symbol('late');

/** The promise's end, or LATE after so long; ends with the signal's reason if it aborts before. */
export async function withLimit<T>(
  promise: Promise<T>,
  ms: number,
  signal?: AbortSignal,
): Promise<T | typeof LATE> {
  promise.catch(() => {}); // Where the limit comes first.
  signal?.throwIfAborted();
  let timer: NodeJS.Timeout | undefined;
  let abort: (() => void) | undefined;
  const limit = new Promise<typeof LATE>((resolve, reject) => {
    timer = setTimeout(() => resolve(LATE), timerMs(ms));
    abort = () => reject(signal?.reason as Error);
    signal?.addEventListener('abort', abort, { once: true });
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
    if (abort) signal?.removeEventListener('abort', abort);
  }
}
