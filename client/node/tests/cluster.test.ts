// A client with the addresses of several nodes: which one it calls, and when it goes to another.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { Server, ServerCredentials, status } from '@grpc/grpc-js';
import { TimecacheClient, op } from 'timecached';
import { Connection } from '../src/connection.js';
import {
  ContainsResponse,
  Entry,
  type Operation,
  type OperationResult,
  PutResponse,
  ScanResponse,
  TimeCacheServiceService as Service,
  type TimeCacheServiceServer,
} from '../src/gen/timecache/v1/data.js';
import {
  ClusterNode,
  GetClusterResponse,
  NodeRole,
  ServerServiceService,
  type ServerServiceServer,
} from '../src/gen/timecache/v1/server.js';
import {
  ExpiredEvent,
  SettleExpiredResponse,
  SettleResult,
  WatchExpiredResponse,
  ConsumeExpiredResponse,
} from '../src/gen/timecache/v1/watch.js';
import { none, refusal } from './fake_server.js';

const BROKEN = { code: status.UNAVAILABLE, details: 'the connection broke' };

function notOwner(owner = '') {
  return refusal('NOT_OWNER', owner ? { owner_address: owner } : {});
}

/** Describes itself. */
const CLUSTER: Partial<ServerServiceServer> = {
  getCluster: (_, answer) =>
    answer(null, {
      ...none(GetClusterResponse),
      name: 'eu',
      owner: 'a',
      claim: 7n,
      leaseLeft: { seconds: 0n, nanos: 500_000_000 },
      nodes: [
        { ...none(ClusterNode), name: 'a', role: NodeRole.NODE_ROLE_OWNER, caughtUp: true },
        { ...none(ClusterNode), name: 'b', sinceHeartbeat: { seconds: 1n, nanos: 0 }, lagMessages: 3n },
      ],
      wrongSettings: [
        { topic: 'eu.journal', setting: 'min.insync.replicas', value: '1', wanted: '2 or more' },
      ],
    }),
  handOver: ({ request }, answer) => answer(null, { to: request.to || 'the best' }),
};

/** Refuses calls while it has an error to give, and notes those that it answers. */
class Node {
  error: object | undefined;
  hangs = false; // Nothing is answered.
  refusalsLeft = -1; // So many, then it owns.
  readonly keys: string[] = [];
  readonly tokens: string[] = [];
  readonly streams: { emit(name: 'error', error: unknown): unknown }[] = [];
  address = '';
  readonly #server = new Server();

  static async start(): Promise<Node> {
    const node = new Node();
    node.#server.addService(Service, node.#calls() as TimeCacheServiceServer);
    node.#server.addService(ServerServiceService, CLUSTER as ServerServiceServer);
    const port = await new Promise<number>((resolve, reject) =>
      node.#server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      ),
    );
    node.address = `127.0.0.1:${port}`;
    return node;
  }

  stop(): void {
    this.#server.forceShutdown();
  }

  /** Streams end so, too. */
  handOver(error: object): void {
    this.error = error;
    for (const stream of this.streams.splice(0)) stream.emit('error', error);
  }

  #refusal(): object | undefined {
    if (this.refusalsLeft > 0 && --this.refusalsLeft === 0) this.error = undefined;
    return this.error;
  }

  #calls(): Partial<TimeCacheServiceServer> {
    const event = () => ({ ...none(ExpiredEvent), key: Buffer.from(this.address), eventId: 7n, attempt: 1 });
    return {
      put: ({ request }, answer) => {
        if (this.hangs) return;
        const error = this.#refusal();
        if (error) return answer(error);
        this.keys.push(`${request.key}`);
        answer(null, { ...none(PutResponse), version: 1n });
      },
      contains: (_, answer) => {
        const error = this.#refusal();
        answer(error ?? null, { ...none(ContainsResponse), contains: true });
      },
      scan: (call) => {
        const error = this.#refusal();
        if (error) return void call.emit('error', error);
        call.write({ ...none(ScanResponse), entries: [{ ...none(Entry), key: Buffer.from('scanned') }] });
        call.end();
      },
      pipeline: (call) => {
        if (this.hangs) return;
        const error = this.#refusal();
        if (error) return void call.emit('error', error);
        call.on('end', () => call.end());
        call.on('data', ({ operations }) => {
          const refused = this.#refusal();
          if (refused) return void call.emit('error', refused);
          const results = operations.map(({ request }: Operation): OperationResult => {
            if (request!.$case === 'contains')
              return { result: { $case: 'contains', value: { contains: true } } };
            this.keys.push(`${request!.value.key}`);
            return { result: { $case: 'put', value: { ...none(PutResponse), version: 1n } } };
          });
          call.write({ results });
        });
      },
      watchExpired: (call) => {
        if (this.hangs) return;
        const error = this.#refusal();
        if (error) return void call.emit('error', error);
        this.tokens.push(...call.request.resumeTokens.map(String));
        this.streams.push(call);
        call.write({
          ...none(WatchExpiredResponse),
          namespace: 'default',
          resumeToken: Buffer.from(this.address),
          events: [event()],
        });
      },
      consumeExpired: (call) => {
        const error = this.#refusal();
        if (error) return void call.emit('error', error);
        call.write({ ...none(ConsumeExpiredResponse), namespace: 'default', events: [event()] });
      },
      settleExpired: ({ request }, answer) => {
        const error = this.#refusal();
        if (error) return answer(error);
        this.onSettled();
        answer(null, {
          ...none(SettleExpiredResponse),
          results: request.settlements.map(() => none(SettleResult)),
        });
      },
    };
  }

  onSettled = () => {};
}

/** An address that nothing listens at. */
async function gone(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return `127.0.0.1:${port}`;
}

interface Cluster {
  a: Node;
  b: Node;
  client(...addresses: string[]): TimecacheClient;
}

/** A test with two nodes. */
function clusterTest(name: string, run: (cluster: Cluster) => Promise<void>): void {
  test(name, async () => {
    const [a, b] = await Promise.all([Node.start(), Node.start()]);
    const clients: TimecacheClient[] = [];
    const client = (...addresses: string[]) => {
      const made = new TimecacheClient(addresses.length ? addresses : `${a.address}, ${b.address}`, {
        timeoutMs: 60_000,
      });
      clients.push(made);
      return made;
    };
    try {
      await run({ a, b, client });
    } finally {
      for (const each of clients) each.close();
      a.stop();
      b.stop();
    }
  });
}

clusterTest('calls go to the owner that the node names', async ({ a, b, client }) => {
  a.error = notOwner(b.address);
  const one = client();
  assert.equal(one.address, a.address);
  await one.put('key', 'value');
  assert.deepEqual([b.keys, one.address], [['key'], b.address]);
  for await (const { key } of client().scan()) assert.equal(`${key}`, 'scanned');
});

clusterTest('calls wait until a node owns', async ({ a, b, client }) => {
  a.error = b.error = notOwner();
  b.refusalsLeft = 3;
  await client().put('key', 'value');
  assert.deepEqual(b.keys, ['key']);
});

clusterTest('without an owner a call ends with its timeout', async ({ a, b, client }) => {
  a.error = b.error = notOwner();
  await assert.rejects(client().put('key', 'value', { timeoutMs: 100 }), (error: Error) =>
    /NOT_OWNER|DEADLINE_EXCEEDED/.test(error.message),
  );
});

clusterTest('one address is enough to find the owner', async ({ a, b, client }) => {
  a.error = notOwner(b.address);
  await client(a.address).put('key', 'value');
  assert.deepEqual(b.keys, ['key']);
});

clusterTest('nodes that are gone are left by the same call', async ({ a, b, client }) => {
  await client(await gone(), b.address).put('first', '');
  a.error = notOwner(await gone());
  await client().put('second', '');
  assert.deepEqual(b.keys, ['first', 'second']);
  await assert.rejects(client(await gone(), await gone()).put('key', ''), {
    code: 'UNAVAILABLE',
    maybeApplied: false,
  });
});

clusterTest('a broken call is repeated elsewhere only if that is safe', async ({ a, b, client }) => {
  const one = client();
  a.error = BROKEN;
  await assert.rejects(one.put('key', ''), { code: 'UNAVAILABLE', maybeApplied: true });
  await one.put('next', '');
  assert.deepEqual(b.keys, ['next']);
  a.error = undefined;
  b.error = BROKEN;
  assert.equal(await one.contains('key'), true);
});

clusterTest('a watch resumes at the owner with its token', async ({ a, b, client }) => {
  const watcher = client().watch({ minPauseMs: 1 });
  assert.equal(`${(await watcher.next()).value?.events[0]?.key}`, a.address);
  a.handOver(notOwner(b.address));
  const { value } = await watcher.next();
  assert.deepEqual([`${value?.events[0]?.key}`, value?.reconnected], [b.address, true]);
  assert.deepEqual(b.tokens, [a.address]);
  watcher.close();
});

clusterTest('a watch resumes at the next address when its node dies', async ({ a, b, client }) => {
  const watcher = client().watch({ minPauseMs: 1 });
  await watcher.next();
  b.error = notOwner(a.address);
  b.refusalsLeft = 3;
  a.stop();
  assert.equal(`${(await watcher.next()).value?.events[0]?.key}`, b.address);
  assert.deepEqual(b.tokens, [a.address]);
  watcher.close();
});

clusterTest('a watch that begins finds the owner', async ({ a, b, client }) => {
  a.error = notOwner(b.address);
  for (const first of [a.address, await gone()]) {
    const watcher = client(first, b.address).watch({ onBreak: (error) => assert.fail(error) });
    assert.equal(`${(await watcher.next()).value?.events[0]?.key}`, b.address);
    watcher.close();
  }
});

clusterTest('a worker takes and settles at the owner', async ({ a, b, client }) => {
  a.error = notOwner(b.address);
  const settled = new Promise<void>((resolve) => (b.onSettled = resolve));
  const worker = client().worker({ group: 'g' }, () => undefined);
  await settled;
  await worker.stop();
});

clusterTest('a pipeline that is refused goes on at the owner', async ({ a, b, client }) => {
  a.error = notOwner(b.address);
  for (const first of [a.address, await gone()]) {
    const pipeline = client(first, b.address).pipeline();
    const puts = Array.from({ length: 10 }, (_, i) => pipeline.add(op.put(`${first} ${i}`, '')));
    await Promise.all(puts);
    await pipeline.close();
  }
  assert.equal(b.keys.length, 20);
  const empty = client().pipeline();
  await empty.close();
});

clusterTest('a pipeline goes on at the next owner', async ({ a, b, client }) => {
  const pipeline = client().pipeline();
  await pipeline.add(op.put('first', ''));
  a.error = notOwner(b.address);
  await Promise.all(Array.from({ length: 10 }, (_, i) => pipeline.add(op.put(`${i}`, ''))));
  await pipeline.close();
  assert.deepEqual([a.keys, b.keys.length], [['first'], 10]);
});

clusterTest('what a node wrote as it lost the ownership may be stored', async ({ a, client }) => {
  a.error = refusal('OWNERSHIP_LOST');
  await assert.rejects(client().put('key', ''), { reason: 'OWNERSHIP_LOST', maybeApplied: true });
});

clusterTest('a pipeline without an owner ends with its timeout', async ({ a, b, client }) => {
  a.error = b.error = notOwner();
  const pipeline = client().pipeline({ timeoutMs: 100 });
  await assert.rejects(pipeline.add(op.put('key', '')), {
    code: 'DEADLINE_EXCEEDED',
    maybeApplied: false,
  });
});

clusterTest('a node that hangs is left by the next call', async ({ a, b, client }) => {
  a.hangs = true;
  const one = client();
  await assert.rejects(one.put('first', '', { timeoutMs: 100 }), { code: 'DEADLINE_EXCEEDED' });
  await one.put('next', '');
  assert.deepEqual(b.keys, ['next']);
});

clusterTest('a node that hangs is left by the next pipeline', async ({ a, b, client }) => {
  a.hangs = true;
  const one = client();
  const first = one.pipeline({ timeoutMs: 100 });
  await assert.rejects(first.add(op.put('first', '')), { code: 'DEADLINE_EXCEEDED' });
  await one.put('next', '');
  assert.deepEqual(b.keys, ['next']);
});

clusterTest('the only node is kept though it hangs', async ({ a, client }) => {
  a.hangs = true;
  const one = client(a.address);
  await assert.rejects(one.put('first', '', { timeoutMs: 100 }), { code: 'DEADLINE_EXCEEDED' });
  a.hangs = false;
  await one.put('next', '');
  assert.deepEqual(a.keys, ['next']);
});

clusterTest('a watch leaves a node that hangs', async ({ a, b, client }) => {
  const options = { minPauseMs: 1, silenceMaxMs: 500 };
  const watcher = client().watch(options);
  assert.equal(`${(await watcher.next()).value?.events[0]?.key}`, a.address);
  assert.equal(`${(await watcher.next()).value?.events[0]?.key}`, b.address);
  assert.equal(b.tokens[0], a.address);
  watcher.close();
  // It is silent from the beginning.
  a.hangs = true;
  const other = client().watch(options);
  assert.equal(`${(await other.next()).value?.events[0]?.key}`, b.address);
  other.close();
});

test('silence is bounded where there are other nodes', () => {
  const bound = (address: string, heartbeatMs?: number) => {
    const connection = new Connection(address, {});
    connection.close();
    return connection.silenceMaxMs(heartbeatMs);
  };
  assert.deepEqual([bound('a:1'), bound('a:1,b:1'), bound('a:1,b:1', 60_000)], [Infinity, 10_000, 240_000]);
});

clusterTest('the cluster is described, and handed over', async ({ a, client }) => {
  const one = client(a.address);
  const { owner, claim, nodes, leaseLeftMs, ownerSince, wrongSettings } = await one.getCluster();
  assert.deepEqual([owner, claim, leaseLeftMs, ownerSince], ['a', 7, 500, undefined]);
  assert.deepEqual(
    nodes.map(({ name, role, sinceHeartbeatMs, lagMessages }) => [name, role, sinceHeartbeatMs, lagMessages]),
    [
      ['a', 'OWNER', 0, 0],
      ['b', undefined, 1_000, 3],
    ],
  );
  assert.equal(wrongSettings[0]?.wanted, '2 or more');
  assert.deepEqual([await one.handOver('b'), await one.handOver()], ['b', 'the best']);
});

test('addresses that are none are named', () => {
  for (const [addresses, named] of [
    ['a:1,,b:1', /""/],
    ['a:1,b', /"b"/],
    [['a:1', 'b'], /"b"/],
    [[], /0 addresses/],
    [Array.from({ length: 17 }, () => 'a:1'), /17 addresses/],
  ] as const) {
    assert.throws(() => new TimecacheClient(addresses), named);
  }
  assert.throws(() => new TimecacheClient('127.0.0.1:1,cache:1', { token: 't' }), /not sent to cache:1/);
});
