// WatchExpired of one namespace, as a tape: it can be stopped and goes on where it was, and
// wound back, within what the server retains. What was missed the server counts.
import { isAbort } from '../api.js';
import { num, time } from '../format.js';

// For winding back to moments since the view was opened, tokens of messages: one a second,
// an hour.
const TOKENS_MAX = 3600;
const TOKEN_EVERY_MS = 1000;

export class TapeStream {
  // `on` is told of {event(event), gap(count, isExact), reset(), watermark(ms),
  // state(name, error), failed(error)}.
  constructor(api, namespace, on) {
    this.api = api;
    this.namespace = namespace;
    this.on = on;
    this.options = {};
    this.tokens = [];
    this.position = { start: 'WATCH_START_NOW' };
    this.skipUntil = 0;
    this.stopped = null;
  }

  get running() {
    return this.stopped !== null;
  }

  // Continues where it was, or begins with what dies from now on.
  start() {
    this.stop();
    this.stopped = new AbortController();
    this.run(this.stopped.signal);
  }

  stop() {
    this.stopped?.abort();
    this.stopped = null;
  }

  // {keyPrefix, keysOnly}. Loses nothing: the stream goes on where it was.
  filter(options) {
    this.options = { ...this.options, ...options };
    if (this.running) this.start();
  }

  // To the events after this moment; 0: to the oldest that is retained.
  rewind(ms) {
    const token = ms > 0 && this.tokens.findLast((each) => each.ms <= ms);
    this.tokens = this.tokens.filter((each) => each.ms <= ms);
    this.position = token ? { resumeTokens: [token.token] } : { start: 'WATCH_START_EARLIEST' };
    this.skipUntil = ms;
    this.start();
  }

  async run(signal) {
    while (!signal.aborted) {
      try {
        await this.api.stream('TimeCacheService/WatchExpired', () => ({
          namespaces: [this.namespace], heartbeatInterval: '1s', ...this.options, ...this.position,
        }), {
          signal, retry: true,
          onState: (state, error) => { if (!signal.aborted) this.on.state(state, error); },
          onMessage: (message) => { if (!signal.aborted) this.take(message); },
        });
      } catch (error) {
        if (signal.aborted || isAbort(error)) return;
        if (error.reason !== 'LOG_CHANGED' && error.reason !== 'RESUME_POINT_AHEAD') {
          this.stop();
          this.on.failed(error);
          return;
        }
        // The log of the token ended with the server's memory, or with the namespace.
        this.on.reset();
        this.tokens = [];
        this.skipUntil = 0;
        this.position = { start: 'WATCH_START_EARLIEST' };
      }
    }
  }

  take(message) {
    const lost = num(message.lost);
    // With a prefix the server counts those that may have had it.
    if (lost > 0) this.on.gap(lost, !this.options.keyPrefix);
    for (const event of message.events) {
      if (this.skipUntil === 0 || time(event.deathTime) > this.skipUntil) this.on.event(event);
    }
    const ms = time(message.watermark);
    if (ms > this.skipUntil) this.skipUntil = 0;
    this.position = { resumeTokens: [message.resumeToken] };
    const last = this.tokens.at(-1);
    if (!last || ms >= last.ms + TOKEN_EVERY_MS) {
      this.tokens.push({ ms, token: message.resumeToken });
      if (this.tokens.length > TOKENS_MAX) this.tokens.shift();
    }
    this.on.watermark(ms);
  }
}
