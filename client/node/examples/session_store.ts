// Sessions that end when they are not used for half an hour, and say so with what they held. Argument: the server's
// address. Begins a session, uses it and ends it.

import { TimecacheClient, type ExpiredEvent } from 'timecached';

const NAMESPACE = 'sessions';

export interface Session {
  user: string;
  basket: string[];
}

export class SessionStore {
  readonly #client: TimecacheClient;

  private constructor(client: TimecacheClient) {
    this.#client = client;
  }

  /** Makes the namespace if it is not there. `sliding`: every read gives a session its half hour again. */
  static async open(client: TimecacheClient, ttlMs = 30 * 60_000): Promise<SessionStore> {
    const options = { ttlMs, numBuckets: 61, sliding: true };
    await client.createNamespace(NAMESPACE, options).catch((error: { reason?: string }) => {
      if (error.reason !== 'NAMESPACE_EXISTS') throw error;
    });
    return new SessionStore(client.namespace(NAMESPACE));
  }

  /** Begins a session; false: there is one of that id. */
  async begin(id: string, session: Session): Promise<boolean> {
    try {
      await this.#client.putJson(id, session, { ifAbsent: true });
      return true;
    } catch (error) {
      if ((error as { reason?: string }).reason === 'KEY_EXISTS') return false;
      throw error;
    }
  }

  read(id: string): Promise<Session | undefined> {
    return this.#client.getJson<Session>(id);
  }

  /** Changes a session as `change` says, again if another has changed it meanwhile; undefined: it is over. */
  async update(id: string, change: (session: Session) => Session): Promise<Session | undefined> {
    for (;;) {
      const entry = await this.#client.get(id);
      if (!entry) return undefined;
      const changed = change(JSON.parse(entry.value.toString()) as Session);
      try {
        await this.#client.putJson(id, changed, { ifVersion: entry.version });
        return changed;
      } catch (error) {
        const { reason } = error as { reason?: string };
        if (reason === 'KEY_NOT_FOUND') return undefined;
        if (reason !== 'VERSION_MISMATCH') throw error;
      }
    }
  }

  /** Ends a session, without telling. */
  async end(id: string): Promise<void> {
    await this.#client.remove(id);
  }

  /** What ends by itself, from now on. */
  async *ended(signal?: AbortSignal): AsyncGenerator<{ id: string; session: Session; event: ExpiredEvent }> {
    for await (const { events } of this.#client.watch({ signal })) {
      for (const event of events) {
        yield { id: event.key.toString(), session: JSON.parse(event.value.toString()) as Session, event };
      }
    }
  }
}

async function main(): Promise<void> {
  const client = new TimecacheClient(process.argv[2] ?? '127.0.0.1:7171');
  try {
    const store = await SessionStore.open(client);
    const id = `${process.pid}-${Date.now()}`;
    await store.begin(id, { user: 'ann', basket: [] });
    await store.update(id, ({ user, basket }) => ({ user, basket: [...basket, 'tea'] }));
    console.log(await store.read(id));
    await store.end(id);
    console.log(await store.read(id));
  } finally {
    client.close();
  }
}

if (require.main === module) {
  main().catch((error: unknown) => {
    console.error(String(error));
    process.exitCode = 1;
  });
}
