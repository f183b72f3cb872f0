// Calls of the server by way of the console: /api/rpc/<service>/<method>.
import { announce } from './dom.js';

const PACKAGE = 'timecache.v1.';
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;
// The console sends an empty line every 5 s: a stream without any for longer is dead.
const SILENCE_MS = 20_000;
const CALL_TIMEOUT_MS = 30_000;

// An error of an RPC (`code`, `reason`, `metadata` as the server gave them), or of the
// way to it (code UNAVAILABLE, reason CONSOLE_UNREACHABLE).
export class ApiError extends Error {
  constructor({ code, message, reason, metadata }, status = 0) {
    super(message || code || 'The call failed.');
    this.name = 'ApiError';
    this.code = code ?? 'UNKNOWN';
    this.reason = reason ?? '';
    this.metadata = metadata ?? {};
    this.status = status;
  }

  // Whether the same call may succeed later without a change.
  get isTransient() {
    return this.code === 'UNAVAILABLE' || this.reason === 'RESPONSE_BROKEN_OFF'
      || this.status === 503;
  }
}

export function isAbort(error) {
  return error?.name === 'AbortError';
}

// "TimeCacheService/Get" -> "timecache.v1.TimeCacheService/Get"
function fullName(method) {
  return method.startsWith('timecache.') ? method : PACKAGE + method;
}

async function errorOf(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    // Not from the bridge: a proxy's page, or a body that broke off.
  }
  return new ApiError(body.error ?? {
    code: response.status >= 500 ? 'UNAVAILABLE' : 'UNKNOWN',
    message: `The console answered with HTTP ${response.status}.`,
  }, response.status);
}

// Throws AbortError after `signal`.
export function pauseFor(ms, signal) {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(new DOMException('aborted', 'AbortError'));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}

// Reads lines of JSON, `take` each of them. Looks for the line's end only in what is
// new: a line may have megabytes.
async function readLines(body, take, alive) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let parts = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    alive();
    let start = 0;
    for (let end = value.indexOf('\n'); end >= 0; end = value.indexOf('\n', start)) {
      parts.push(value.slice(start, end));
      const line = parts.join('');
      parts = [];
      start = end + 1;
      if (line !== '') take(JSON.parse(line));
    }
    if (start < value.length) parts.push(value.slice(start));
  }
}

export class Api {
  // `onConnection({state, message})`: state is 'ok' or 'lost'. `onUnauthorized()`: the
  // console does not take the token.
  constructor({ token, onUnauthorized, onConnection }) {
    this.token = token;
    this.onUnauthorized = onUnauthorized;
    this.onConnection = onConnection;
    this.state = '';
  }

  report(state, message = '') {
    if (this.state === state && this.message === message) return;
    const before = this.state;
    this.state = state;
    this.message = message;
    this.onConnection({ state, message });
    if (state === 'lost' && before === 'ok') announce('The server is not reachable. Trying again.');
    if (state === 'ok' && before === 'lost') announce('The server is reachable again.');
  }

  async fetch(path, { body, signal }) {
    let response;
    try {
      response = await fetch(path, {
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          authorization: `Bearer ${this.token}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        body, signal, cache: 'no-store', credentials: 'omit', redirect: 'error',
      });
    } catch (error) {
      if (isAbort(error)) throw error;
      const failure = new ApiError({
        code: 'UNAVAILABLE', reason: 'CONSOLE_UNREACHABLE',
        message: 'timecachectl console does not answer. Is it still running?',
      });
      this.report('lost', failure.message);
      throw failure;
    }
    if (response.ok) return response;
    const error = await errorOf(response);
    // An error of the server's own has a reason; without one it is the console's.
    if (response.status === 401 && !error.reason) this.onUnauthorized();
    else this.reportError(error);
    throw error;
  }

  // An error of the RPC itself says that the server is there.
  reportError(error) {
    if (error.code !== 'UNAVAILABLE') {
      if (error.status !== 503) this.report('ok');
      return;
    }
    this.report('lost', error.reason === 'DRAINING' ? 'The server is stopping.' : error.message);
  }

  // What the console is: see the HTTP interface.
  async console(signal) {
    return (await this.fetch('/api/console', { signal })).json();
  }

  // A unary call. Throws ApiError, or AbortError after `signal`.
  async call(method, request = {}, { signal, timeoutMs = CALL_TIMEOUT_MS } = {}) {
    const limit = AbortSignal.timeout(timeoutMs);
    try {
      const response = await this.fetch(`/api/rpc/${fullName(method)}`, {
        body: JSON.stringify(request),
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
      });
      const answer = await response.json();
      this.report('ok');
      return answer;
    } catch (error) {
      if (!limit.aborted || error instanceof ApiError || signal?.aborted) throw error;
      const failure = new ApiError({
        code: 'DEADLINE_EXCEEDED', message: `No answer within ${timeoutMs / 1000} s.`,
      });
      throw failure;
    }
  }

  // One attempt at a stream. Returns at its end, throws ApiError if it ends with one.
  async streamOnce(method, request, { signal, onMessage, onOpen }) {
    const silence = new AbortController();
    let timer = 0;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
    };
    let ended = false;
    try {
      alive();
      const response = await this.fetch(`/api/rpc/${fullName(method)}`, {
        body: JSON.stringify(request),
        signal: signal ? AbortSignal.any([signal, silence.signal]) : silence.signal,
      });
      this.report('ok');
      onOpen?.();
      await readLines(response.body, (line) => {
        if (line.error) throw new ApiError(line.error, 200);
        if (line.end) ended = true;
        else if (line.message) onMessage(line.message);
      }, alive);
    } catch (error) {
      if (signal?.aborted) throw new DOMException('aborted', 'AbortError');
      if (error instanceof ApiError) {
        this.reportError(error);
        throw error;
      }
      if (!(isAbort(error) || error instanceof TypeError)) throw error;
      ended = false;
    } finally {
      clearTimeout(timer);
      // Whatever ended the reading: the call ends, too.
      silence.abort();
    }
    if (!ended) {
      throw new ApiError({
        code: 'UNAVAILABLE', reason: 'RESPONSE_BROKEN_OFF', message: 'The stream broke off.',
      });
    }
  }

  // A server-streaming call: `onMessage(message)` for each. Resolves when the stream
  // ends with OK. With `retry` it never does: what ends or is transient is begun anew
  // after a growing pause, and `request`, which may be a function, is asked for again,
  // so that it can have the last resume token. `onState` gets 'connecting', 'open' and
  // 'waiting', the last with the error, if one was the end. Throws ApiError, or AbortError
  // after `signal`.
  async stream(method, request, { signal, onMessage, onState, retry = false } = {}) {
    let pause = FIRST_PAUSE_MS;
    for (;;) {
      onState?.('connecting');
      let failure = null;
      try {
        await this.streamOnce(method, typeof request === 'function' ? request() : request, {
          signal, onMessage,
          onOpen: () => {
            pause = FIRST_PAUSE_MS;
            onState?.('open');
          },
        });
        if (!retry) return;
      } catch (error) {
        if (!retry || isAbort(error) || !error.isTransient) throw error;
        failure = error;
      }
      onState?.('waiting', failure);
      // Pages that lost the same server must not all return at once.
      await pauseFor(pause * (0.75 + Math.random() / 2), signal);
      pause = Math.min(2 * pause, MAX_PAUSE_MS);
    }
  }
}

// Calls `task` now and `everyMs` after each end of it, until `signal`. A failure makes
// the pause grow; the page's bar says that the server is not reachable. A page that is
// hidden waits four times as long.
export async function poll(task, everyMs, signal) {
  let pause = everyMs;
  while (!signal.aborted) {
    try {
      await task();
      pause = everyMs;
    } catch (error) {
      if (signal.aborted || isAbort(error)) return;
      if (!(error instanceof ApiError)) throw error;
      pause = Math.min(Math.max(2 * pause, FIRST_PAUSE_MS), Math.max(MAX_PAUSE_MS, everyMs));
    }
    try {
      await pauseFor(document.hidden ? 4 * pause : pause, signal);
    } catch {
      return;
    }
  }
}
