// A store for express-session: sessions in timecached, which also says when one has ended by itself, with what it held.
//
//     const store = await TimecachedStore.open(client);
//     app.use(session({ store, secret, resave: false, saveUninitialized: false, cookie: { maxAge: 30 * 60_000 } }));
//     for await (const { id, session } of store.ended()) mailAboutBasket(session);
//
// Run with the server's address, it serves a page on port 8080 that counts its visits. Needs express-session, but not
// Express: its middleware works with any server of Node's.

import type { EventEmitter } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { TimecacheClient } from 'timecached';

/** What express-session keeps: JSON, with the cookie's options. */
export interface SessionData {
  cookie: { originalMaxAge?: number | null };
  [name: string]: unknown;
}

type Callback<Result = void> = (error?: unknown, result?: Result) => void;
export type Middleware = (request: IncomingMessage, response: ServerResponse, next: Callback) => void;

// Who has @types/express-session imports it as usual.
const expressSession = require('express-session') as {
  (options: object): Middleware;
  Store: new () => EventEmitter;
};

/** Every request renews its session: express-session calls `touch`, or `set` where it has changed. */
export class TimecachedStore extends expressSession.Store {
  readonly #client: TimecacheClient;

  private constructor(client: TimecacheClient) {
    super();
    this.#client = client;
  }

  /**
   * Makes the namespace if it is not there. `ttlMs`: of sessions whose cookie has no maxAge. With so many buckets a session
   * ends at most a minute late.
   */
  static async open(
    client: TimecacheClient,
    { namespace = 'express-sessions', ttlMs = 24 * 3_600_000, maxTtlMs = 365 * 24 * 3_600_000 } = {},
  ): Promise<TimecachedStore> {
    const numBuckets = Math.min(Math.ceil(ttlMs / 60_000), 99_999) + 1;
    await client
      .createNamespace(namespace, { ttlMs, numBuckets, maxTtlMs })
      .catch((error: { reason?: string }) => {
        if (error.reason !== 'NAMESPACE_EXISTS') throw error;
      });
    return new TimecachedStore(client.namespace(namespace));
  }

  /** Of a session that is not there: no error, and no result. */
  get(id: string, callback: Callback<SessionData | null>): void {
    answer(callback, async () => (await this.#client.getJson<SessionData>(id)) ?? null);
  }

  set(id: string, session: SessionData, callback?: Callback): void {
    // That another request has made it is no matter: the last one counts, as with other stores.
    answer(callback, () => this.#client.putJson(id, session, { ttlMs: ttlOf(session), repeatable: true }));
  }

  touch(id: string, session: SessionData, callback?: Callback): void {
    answer(callback, () => this.#client.touch(id, { ttlMs: ttlOf(session) }));
  }

  destroy(id: string, callback?: Callback): void {
    answer(callback, () => this.#client.remove(id, { repeatable: true }));
  }

  length(callback: Callback<number>): void {
    answer(callback, async () => (await this.#client.size()).entries);
  }

  all(callback: Callback<SessionData[]>): void {
    answer(callback, async () => {
      const sessions: SessionData[] = [];
      for await (const { value } of this.#client.scan()) {
        sessions.push(JSON.parse(value.toString()) as SessionData);
      }
      return sessions;
    });
  }

  /**
   * The sessions that end by themselves, from now on; not those that are destroyed. A group of workers, to see each once
   * in all processes: client.namespace('express-sessions').worker(...).
   */
  async *ended(signal?: AbortSignal): AsyncGenerator<{ id: string; session: SessionData }> {
    for await (const { events } of this.#client.watch({ signal })) {
      for (const { key, value } of events) {
        yield { id: key.toString(), session: JSON.parse(value.toString()) as SessionData };
      }
    }
  }
}

function ttlOf({ cookie }: SessionData): number | undefined {
  return cookie.originalMaxAge ?? undefined;
}

function answer<Result>(callback: Callback<never> | undefined, call: () => Promise<Result>): void {
  call().then(
    (result) => callback?.(null, result as never),
    (error: unknown) => callback?.(error),
  );
}

/** A page that counts its visits; `/bye` ends the session. */
export function countVisits(store: TimecachedStore, secret: string, maxAge: number) {
  const options = { store, secret, resave: false, saveUninitialized: false, cookie: { maxAge } };
  const middleware = expressSession(options);
  return createServer((request, response) => {
    middleware(request, response, (error) => {
      const { session } = request as unknown as {
        session?: { visits?: number; destroy(done: Callback): void };
      };
      if (error || !session) {
        response.writeHead(503).end('no sessions\n');
      } else if (request.url === '/bye') {
        session.destroy(() => response.end('bye\n'));
      } else {
        session.visits = (session.visits ?? 0) + 1;
        response.end(`visit ${session.visits}\n`);
      }
    });
  });
}

async function main(): Promise<void> {
  const client = new TimecacheClient(process.argv[2] ?? '127.0.0.1:7171');
  const store = await TimecachedStore.open(client);
  countVisits(store, process.env['SESSION_SECRET'] ?? 'change me', 30 * 60_000).listen(8080, '127.0.0.1');
  console.log('http://127.0.0.1:8080');
  for await (const { id, session } of store.ended())
    console.log(`${id} has ended: ${JSON.stringify(session)}`);
}

if (require.main === module) {
  main().catch((error: unknown) => {
    console.error(String(error));
    process.exitCode = 1;
  });
}
