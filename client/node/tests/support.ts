// Servers for tests: each on a free port and on its virtual clock.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after } from 'node:test';
import { TimecacheClient, VirtualClock, type ClientOptions, type WatchBatch, type Watcher } from 'timecached';

const servers = new Set<TestServer>();

// What a test that failed has left.
after(async () => {
  for (const server of servers) await server.stop('SIGKILL');
});

export class TestServer {
  readonly address: string;
  readonly #process: ChildProcess;

  private constructor(process: ChildProcess, address: string) {
    this.#process = process;
    this.address = address;
    servers.add(this);
  }

  /** Started with --virtual-clock, unless there is a --config. */
  static async start(flags: readonly string[] = [], listen?: string): Promise<TestServer> {
    const program = process.env['TIMECACHED'];
    if (!program) throw new Error('TIMECACHED must name the server program');
    const own = flags.includes('--config') ? [] : ['--listen', listen ?? '127.0.0.1:0', '--virtual-clock'];
    const child = spawn(program, [...own, '--log-format', 'json', ...flags], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const log: string[] = [];
    for await (const line of createInterface({ input: child.stderr })) {
      log.push(line);
      const { event, address } = JSON.parse(line) as { event: string; address: string };
      if (event !== 'server_started') continue;
      child.stderr.resume();
      return new TestServer(child, address);
    }
    throw new Error(`the server did not start:\n${log.join('\n')}`);
  }

  /** Patient: a busy machine is no reason to fail. */
  client(options: ClientOptions = {}): TimecacheClient {
    return new TimecacheClient(this.address, { timeoutMs: 60_000, ...options });
  }

  /** From here on it answers nothing, with its connections open; to be ended by SIGKILL. */
  freeze(): void {
    this.#process.kill('SIGSTOP');
    // Its threads stop one after the other.
    const tasks = `/proc/${this.#process.pid}/task`;
    const isStopped = (task: string) => readFileSync(`${tasks}/${task}/stat`, 'latin1').includes(') T ');
    while (!readdirSync(tasks).every(isStopped));
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    servers.delete(this);
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exit = once(this.#process, 'exit');
    this.#process.kill(signal);
    await exit;
  }
}

/** A server with a client and its clock, for all tests of a file; ended by `stop`. */
export interface Fixture {
  server: TestServer;
  client: TimecacheClient;
  clock: VirtualClock;
  stop(): Promise<void>;
}

export async function startFixture(
  flags: readonly string[] = [],
  options: ClientOptions = {},
): Promise<Fixture> {
  const server = await TestServer.start(flags);
  const client = server.client(options);
  const stop = async () => {
    client.close();
    await server.stop();
  };
  return { server, client, clock: new VirtualClock(client), stop };
}

let namespaces = 0;

/** A namespace of its own for one test: entries live 10 s, in buckets of 1 s, unless `options` say otherwise. */
export async function freshNamespace(
  client: TimecacheClient,
  options: Parameters<TimecacheClient['createNamespace']>[1] = {},
): Promise<TimecacheClient> {
  const name = `test-${++namespaces}`;
  await client.createNamespace(name, { ttlMs: 10_000, numBuckets: 11, ...options });
  return client.namespace(name);
}

/** Reads a watch until a batch is like this. */
export async function readTo(
  watcher: Watcher,
  isLast: (batch: WatchBatch) => boolean,
): Promise<WatchBatch[]> {
  const batches: WatchBatch[] = [];
  for (;;) {
    const { value } = await watcher.next();
    if (!value) throw new Error('the watch has ended');
    batches.push(value);
    if (isLast(value)) return batches;
  }
}

/** Reads a watch until its watermark is at `time` or beyond it. */
export function readUntil(watcher: Watcher, time: number): Promise<WatchBatch[]> {
  return readTo(watcher, ({ watermark }) => watermark >= time);
}

/** Reads a watch until a batch has events. */
export function readToEvents(watcher: Watcher): Promise<WatchBatch[]> {
  return readTo(watcher, ({ events }) => events.length > 0);
}

export function keysOf(batches: readonly WatchBatch[]): string[] {
  return batches.flatMap(({ events }) => events.map(({ key }) => key.toString()));
}

/** Waits, for at most so long, until what happens in the background has. */
export async function eventually(
  condition: () => boolean | Promise<boolean>,
  limitMs = 60_000,
): Promise<void> {
  for (const end = Date.now() + limitMs; !(await condition());) {
    if (Date.now() > end) throw new Error('it has not happened in time');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export function makeTemporaryDirectory(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'timecache-test-'));
  return { path, remove: () => rmSync(path, { recursive: true }) };
}
