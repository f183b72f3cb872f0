import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import {
  TimecacheClient,
  TimecacheError,
  VirtualClock,
  ack,
  fromJson,
  isMessageTooLarge,
  op,
  putBack,
  toJson,
} from 'timecached';
import {
  eventually,
  freshNamespace,
  makeTemporaryDirectory,
  startFixture,
  TestServer,
  type Fixture,
} from './support.js';

let fixture: Fixture;
before(async () => {
  fixture = await startFixture();
});
after(() => fixture.stop());

function refused(code: string, reason?: string) {
  return (error: unknown) => {
    assert.ok(error instanceof TimecacheError, String(error));
    assert.deepEqual([error.code, error.reason], [code, reason]);
    return true;
  };
}

test('keys and values are bytes, and strings are UTF-8', async () => {
  const client = await freshNamespace(fixture.client);
  await client.put('schlüssel', 'wert');
  assert.equal((await client.get(Buffer.from('schlüssel')))?.value.toString(), 'wert');
  const bytes = Uint8Array.of(9, 0, 255, 128, 9);
  const view = Uint8Array.of(7, 0, 255, 128, 7).subarray(1, 4);
  await client.put(view, bytes);
  assert.deepEqual((await client.get(Uint8Array.of(0, 255, 128)))?.value, Buffer.from(bytes));
  assert.equal(await client.get('AP+A'), undefined, 'strings are not base64');
});

test('text and JSON', async () => {
  const client = await freshNamespace(fixture.client);
  await client.putJson('a', { total: 42 });
  assert.deepEqual(await client.getJson<{ total: number }>('a'), { total: 42 });
  assert.equal(await client.getText('a'), '{"total":42}');
  assert.equal(await client.getJson('b'), undefined);
  assert.equal(await client.getText('b'), undefined);
  assert.deepEqual(fromJson(toJson(['ä', null])), ['ä', null]);
  assert.throws(() => toJson(undefined), TypeError);
});

test('times are a Date, or milliseconds with fractions', async () => {
  const client = await freshNamespace(fixture.client);
  const now = await fixture.clock.now();
  const deadline = async (options: { expireAt?: number | Date; ttlMs?: number }) => {
    await client.put('a', '1', options);
    return (await client.get('a'))!.deadline - now;
  };
  assert.equal(await deadline({ expireAt: now + 7_000.25 }), 7_000.25);
  assert.equal(await deadline({ expireAt: new Date(now + 8_000) }), 8_000);
  assert.equal(await deadline({ ttlMs: 1_500.5 }), 1_500.5);
  await assert.rejects(deadline({ ttlMs: -0.001 }), refused('INVALID_ARGUMENT', 'INVALID_FIELD'));
  for (const expireAt of [NaN, new Date(NaN)]) await assert.rejects(deadline({ expireAt }), TypeError);
});

test('an option in milliseconds gets its default by its name', async () => {
  const client = await freshNamespace(fixture.client);
  const updated = await client.updateNamespace(client.defaultNamespace, {}, { toDefault: ['ttlMs'] });
  assert.equal(updated.options.ttlMs, 30_000);
});

test('execute gives each operation its own result, with its type', async () => {
  const client = await freshNamespace(fixture.client);
  const [put, get, missing, exists, number] = await client.execute([
    op.put('a', '1'),
    op.get('a'),
    op.touch('b'),
    op.put('a', '2', { ifAbsent: true }),
    op.combine('n', { add: 7 }),
  ]);
  assert.ok(put.status === 'fulfilled' && put.value.version > 0);
  assert.ok(get.status === 'fulfilled');
  assert.equal(`${get.value?.key} ${get.value?.value}`, 'a 1');
  assert.deepEqual(missing, { status: 'fulfilled', value: undefined });
  assert.ok(exists.status === 'rejected');
  assert.equal((exists.reason as TimecacheError).reason, 'KEY_EXISTS');
  assert.ok(number.status === 'fulfilled' && number.value.result === 7n);
  assert.deepEqual(await client.execute([]), []);
  const many = Array.from({ length: 4_097 }, () => op.get('a'));
  await assert.rejects(client.execute(many), refused('INVALID_ARGUMENT', 'INVALID_FIELD'));
});

test('scan gives each entry, by prefix; leaving the loop ends it', async () => {
  const client = await freshNamespace(fixture.client);
  const keys = Array.from({ length: 2_500 }, (_, i) => `k${i}`);
  await client.execute(keys.map((key) => op.put(key, `value of ${key}`)));
  const seen = new Set<string>();
  for await (const { key, value } of client.scan()) {
    assert.equal(value.toString(), `value of ${key}`);
    seen.add(key.toString());
  }
  assert.deepEqual(seen, new Set(keys));
  let count = 0;
  for await (const { key, value } of client.scan({ keyPrefix: 'k24', keysOnly: true })) {
    assert.ok(key.toString().startsWith('k24'));
    assert.equal(value.length, 0);
    ++count;
  }
  assert.equal(count, 111);
  for await (const entry of client.scan()) {
    assert.ok(entry);
    break;
  }
  assert.deepEqual(await client.size(), {
    entries: 2_500,
    bytes: 2 * (10 * 2 + 90 * 3 + 900 * 4 + 1500 * 5) + 2_500 * 9,
  });
});

test('errors say code, reason, field, metadata, delay and request id', async () => {
  const { client } = fixture;
  await assert.rejects(client.namespace('absent').get('a', { requestId: 'id-17' }), (error: unknown) => {
    refused('NOT_FOUND', 'NAMESPACE_NOT_FOUND')(error);
    assert.equal((error as TimecacheError).requestId, 'id-17');
    assert.match((error as TimecacheError).message, /^NOT_FOUND \(NAMESPACE_NOT_FOUND\): .*absent/);
    return true;
  });
  const limited = await freshNamespace(client, { maxOperationsPerSecond: 1 });
  await limited.put('a', '1');
  await assert.rejects(limited.put('a', '2'), (error: unknown) => {
    refused('RESOURCE_EXHAUSTED', 'MAX_OPERATION_RATE')(error);
    assert.ok((error as TimecacheError).retryDelayMs! > 0);
    return true;
  });
  await assert.rejects(client.put('', '1'), (error: unknown) => {
    assert.equal((error as TimecacheError).field, 'key');
    return true;
  });
  await assert.rejects(client.put(7 as unknown as string, '1'), TypeError);
});

test('values of 16 MiB pass, and what a smaller channel does not take is told', async () => {
  const client = await freshNamespace(fixture.client, { maxValueBytes: 16 << 20 });
  const value = Buffer.alloc(16 << 20, 'x');
  await client.put('a', value);
  assert.ok((await client.get('a'))?.value.equals(value));
  const small = fixture.server.client({
    namespace: client.defaultNamespace,
    channelOptions: { 'grpc.max_receive_message_length': 4 << 20 },
  });
  await assert.rejects(small.get('a'), (error: unknown) => isMessageTooLarge(error));
  for await (const { omittedValueBytes } of small.scan()) {
    assert.equal(omittedValueBytes, 16 << 20);
  }
  small.close();
});

test('an aborted call is rejected with the reason of its signal', async () => {
  const { client } = fixture;
  await assert.rejects(client.get('a', { signal: AbortSignal.abort() }), { name: 'AbortError' });
  const controller = new AbortController();
  const calls = Promise.allSettled([client.put('a', '1', { signal: controller.signal })]);
  controller.abort(new Error('enough'));
  const [result] = await calls;
  assert.ok(result?.status === 'rejected' && (result.reason as Error).message === 'enough');
});

test('a call without a server fails soon, with UNAVAILABLE', async () => {
  const client = new TimecacheClient('127.0.0.1:1');
  await assert.rejects(client.put('a', '1'), { code: 'UNAVAILABLE', maybeApplied: false });
  await assert.rejects(client.get('a', { timeoutMs: 60_000 }), refused('UNAVAILABLE', undefined));
  await assert.rejects(client.scan().next(), { code: 'UNAVAILABLE', maybeApplied: false });
  client.close();
  // One that takes the connection and says nothing.
  const sockets: Socket[] = [];
  const silent = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  let fastest = Infinity; // A busy machine may be late.
  for (let i = 0; i < 20 && fastest >= 240; ++i) {
    const waiting = new TimecacheClient(`127.0.0.1:${port}`);
    const begin = performance.now();
    await assert.rejects(waiting.get('a', { timeoutMs: 50 }), {
      code: 'DEADLINE_EXCEEDED',
      maybeApplied: false, // HTTP/2 was never spoken.
    });
    fastest = Math.min(fastest, performance.now() - begin);
    waiting.close();
  }
  assert.ok(fastest < 240);
  for (const socket of sockets) socket.destroy();
  silent.close();
});

test('safe calls survive a restart of the server; clients come back by themselves', async () => {
  const server = await TestServer.start();
  const client = server.client();
  const clock = new VirtualClock(client);
  assert.equal(await clock.advance(5), 5);
  assert.equal(await clock.advanceTo(7.25), 7.25);
  await server.stop('SIGKILL');
  await assert.rejects(client.put('a', '1'), refused('UNAVAILABLE', undefined));
  const again = await TestServer.start([], server.address);
  for (;;) {
    try {
      await client.put('a', '1', { timeoutMs: 60_000 });
      break;
    } catch (error) {
      refused('UNAVAILABLE', undefined)(error);
    }
  }
  assert.equal(await client.getText('a'), '1');
  client.close();
  await again.stop();
});

test('calls that are safe to repeat are, where their connection is lost; others only if they say so', async () => {
  const [host, port] = fixture.server.address.split(':');
  let cuts = 0; // Connections to lose, each at the next request.
  const proxy = createServer((socket) => {
    const upstream = connect(Number(port), host);
    socket.on('data', (data) => {
      if (cuts === 0) return void upstream.write(data);
      --cuts;
      socket.destroy();
    });
    upstream.on('data', (data) => socket.write(data));
    socket.on('close', () => upstream.destroy());
    for (const end of [socket, upstream]) end.on('error', () => {});
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const address = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const client = new TimecacheClient(address);
  await client.put('retried', '1');
  cuts = 1;
  assert.equal(await client.getText('retried'), '1');
  cuts = 1;
  await assert.rejects(client.put('retried', '2'), { code: 'UNAVAILABLE', maybeApplied: true });
  assert.equal(await client.getText('retried'), '1');
  cuts = 1;
  await client.put('retried', '3', { repeatable: true });
  cuts = 1;
  await assert.rejects(client.put('retried', '4', { repeatable: true, ifAbsent: true }), {
    reason: 'KEY_EXISTS', // Of the second attempt: the first one may have made it.
    maybeApplied: true,
  });
  assert.equal(await client.getText('retried'), '3');
  const single = new TimecacheClient(address, { retry: { maxAttempts: 1 } });
  assert.equal(await single.contains('retried'), true);
  cuts = 1;
  await assert.rejects(single.contains('retried'), refused('UNAVAILABLE', undefined));
  client.close();
  single.close();
  proxy.close();
});

test('unix sockets, and backups of the journal', async () => {
  const directory = makeTemporaryDirectory();
  const server = await TestServer.start(
    ['--journal', `${directory.path}/journal`],
    `unix:${directory.path}/socket`,
  );
  const client = server.client();
  await client.createNamespace('durable', { durability: 'SYNC' });
  await client.namespace('durable').put('a', '1');
  const pieces: Buffer[] = [];
  let total = 0;
  for await (const { data, totalBytes } of client.backupJournal()) {
    pieces.push(data);
    total = totalBytes;
  }
  const archive = Buffer.concat(pieces);
  assert.equal(archive.length, total);
  assert.equal(archive.subarray(257, 262).toString(), 'ustar');
  assert.equal((await client.getServer()).journal?.diskFull, false);
  client.close();
  await server.stop();
  directory.remove();
  await assert.rejects(fixture.client.backupJournal().next(), refused('FAILED_PRECONDITION', 'NO_JOURNAL'));
});

test('a client that is closed ends what is under way, and refuses what comes later', async () => {
  const client = fixture.server.client();
  const breaks: unknown[] = [];
  const watcher = client.watch({ onBreak: (error) => breaks.push(error) });
  await watcher.next();
  const worker = client.worker({ group: 'closed' }, () => {});
  const workerEnd = assert.rejects(worker.finished, refused('CANCELLED'));
  const pipeline = client.pipeline();
  await pipeline.add(op.get('a'));
  await eventually(async () => {
    const group = await client.getGroup('closed', { includeStatistics: true }).catch(() => undefined);
    return group?.statistics?.members === 1;
  });
  const next = assert.rejects(watcher.next(), refused('CANCELLED'));
  const put = assert.rejects(client.put('a', Buffer.alloc(1 << 20)), {
    code: 'CANCELLED',
    maybeApplied: true,
  });
  await new Promise((resolve) => setImmediate(resolve)); // The put is under way.
  client.close();
  client.close();
  await Promise.all([next, put, workerEnd]);
  await assert.rejects(pipeline.close(), refused('CANCELLED'));
  assert.deepEqual(breaks, []);
  await assert.rejects(client.get('a'), { code: 'CANCELLED', maybeApplied: false });
  await assert.rejects(client.watch().next(), refused('CANCELLED'));
  await assert.rejects(client.pipeline().add(op.get('a')), refused('CANCELLED'));
  await assert.rejects(client.scan().next(), refused('CANCELLED'));
  await eventually(async () => {
    const { statistics } = await fixture.client.getGroup('closed', { includeStatistics: true });
    return statistics?.members === 0;
  });
});

test('a token that does not come fails its call in time, and watches try again', async () => {
  const { server } = fixture;
  const never = server.client({ token: () => new Promise<string>(() => {}) });
  // Also time for the connection, which a busy machine may take.
  await assert.rejects(never.get('a', { timeoutMs: 1_000 }), refused('UNAVAILABLE'));
  const signal = AbortSignal.timeout(5);
  await assert.rejects(never.get('a', { signal }), { name: 'TimeoutError' });
  const watcher = never.watch();
  const next = watcher.next();
  watcher.close();
  assert.equal((await next).done, true);
  never.close();

  let asked = 0;
  const sometimes = server.client({
    token: () => {
      if (++asked === 1) throw new Error('the safe is shut');
      return 'any';
    },
  });
  const errors: Error[] = [];
  const waiting = sometimes.watch({ waitForServer: true, onBreak: (error) => errors.push(error) });
  await waiting.next();
  assert.deepEqual(
    errors.map(({ message }) => message),
    ['UNAVAILABLE: no token: the safe is shut'],
  );
  waiting.close();
  sometimes.close();

  const broken = server.client({ token: 'secret\n' });
  await assert.rejects(broken.get('a'), (error: unknown) => {
    assert.ok(error instanceof TypeError && !error.message.includes('secret'));
    return true;
  });
  broken.close();
});

test('what is for this machine does not go through the proxy of the environment', async () => {
  process.env['grpc_proxy'] = 'http://127.0.0.1:1';
  const client = fixture.server.client();
  delete process.env['grpc_proxy'];
  await client.get('a');
  client.close();
});

test('an error says code, reason and who called', async () => {
  async function checkout() {
    await fixture.client.namespace('absent').put('a', '1');
  }
  async function read() {
    for await (const entry of fixture.client.namespace('absent').scan()) assert.fail(String(entry));
  }
  for (const caller of [checkout, read]) {
    await assert.rejects(caller(), (error: unknown) => {
      assert.ok(error instanceof TimecacheError);
      assert.equal(error.message, `NOT_FOUND (NAMESPACE_NOT_FOUND): ${error.description}`);
      assert.ok(error.stack?.includes(caller.name), error.stack);
      assert.equal(error.maybeApplied, false);
      return true;
    });
  }
});

test('an option that is not known is refused, with the one that may be meant', async () => {
  const { client } = fixture;
  const refuses = async (call: () => unknown, name: string, meant: string) => {
    await assert.rejects(
      async () => call(),
      (error: unknown) => {
        assert.ok(error instanceof TypeError, String(error));
        assert.ok(error.message.includes(`no option ${name}: did you mean ${meant}?`), error.message);
        return true;
      },
    );
  };
  const any = (options: object) => options as never;
  await refuses(() => client.put('a', '1', any({ ttl: 5 })), 'ttl', 'ttlMs');
  await refuses(() => client.put('a', '1', any({ if_absent: true })), 'if_absent', 'ifAbsent');
  await refuses(() => op.put('a', '1', any({ expiresAt: 5 })), 'expiresAt', 'expireAt');
  await refuses(() => client.get('a', any({ timeout: 5 })), 'timeout', 'timeoutMs');
  await refuses(() => client.contains('a', any({ requestID: '' })), 'requestID', 'requestId');
  await refuses(() => client.scan(any({ keyprefix: 'a' })).next(), 'keyprefix', 'keyPrefix');
  await refuses(
    () => client.watch(any({ heartbeatInterval: 5 })),
    'heartbeatInterval',
    'heartbeatIntervalMs',
  );
  await refuses(() => client.watchExpiring(any({ leadTime: 5 })), 'leadTime', 'leadTimeMs');
  await refuses(() => client.consume(any({ group: 'g', maxInflight: 5 })), 'maxInflight', 'maxInFlight');
  await refuses(
    () => client.worker(any({ group: 'g', concurency: 5 }), () => {}),
    'concurency',
    'concurrency',
  );
  await refuses(() => client.pipeline(any({ timeout: 5 })), 'timeout', 'timeoutMs');
  await refuses(() => client.createNamespace('n', any({ num_buckets: 5 })), 'num_buckets', 'numBuckets');
  await refuses(() => client.createGroup('g', any({ ackTimeout: 5 })), 'ackTimeout', 'ackTimeoutMs');
  await refuses(
    () => client.getGroup('g', any({ includeStatistic: true })),
    'includeStatistic',
    'includeStatistics',
  );
  await refuses(() => putBack(any({ ttl: 5 })), 'ttl', 'ttlMs');
  await refuses(() => new TimecacheClient('a:1', any({ tokens: '' })), 'tokens', 'token');
  await refuses(
    () => new TimecacheClient('a:1', any({ retry: { maxAttempt: 1 } })),
    'maxAttempt',
    'maxAttempts',
  );
  await refuses(() => new TimecacheClient('a:1', any({ tls: { ca_file: '' } })), 'ca_file', 'caFile');
  await assert.rejects(
    client.get('a', any({ zzzzzzzz: 1 })),
    /get has no option zzzzzzzz: it takes touch, timeoutMs/,
  );
  await assert.rejects(client.get('a', 5 as never), TypeError);
});

test('what no message has room for is a TypeError, and ends no stream', async () => {
  const { client } = fixture;
  const gather = (expectedParts: number) => client.gather('k', 'p', 'v', { expectedParts });
  for (const parts of [-1, 0.5, NaN, 2 ** 32]) await assert.rejects(gather(parts), TypeError);
  assert.throws(() => op.gather('k', 'p', 'v', { expectedParts: -1 }), TypeError);
  for (const ttlMs of [1e300, NaN]) await assert.rejects(client.put('k', 'v', { ttlMs }), TypeError);
  await assert.rejects(client.put('k', 'v', { ifAbsent: true, ifVersion: 1 }), TypeError);
  await assert.rejects(client.combine('k', { add: 2 ** 53 }), TypeError);
  await assert.rejects(client.get('k', { timeoutMs: NaN }), TypeError);
  await assert.rejects(client.createNamespace('n', { numBuckets: -1 }), TypeError);
  await assert.rejects(client.createNamespace('n', { durability: 'DISK' as 'SYNC' }), TypeError);
  await assert.rejects(client.watch({ maxMessageBytes: -1 }).next(), TypeError);
  await assert.rejects(client.consume({ group: 'g', maxInFlight: 1.5 }).next(), TypeError);
  await assert.rejects(
    client.settle('g', [{ deliveryToken: 7 as unknown as Buffer, how: ack() }]),
    TypeError,
  );
});

test('what is no address is refused before any call', () => {
  for (const address of ['', '7171', '127.0.0.1', 'localhost:', 'http://127.0.0.1:7171', '127.0.0.1:7171/']) {
    assert.throws(() => new TimecacheClient(address), TypeError, address);
  }
  for (const address of [
    'localhost:1',
    '[::1]:1',
    'cache.example:7171',
    'unix:/run/a.sock',
    'dns:///a.example:1',
  ]) {
    new TimecacheClient(address).close();
  }
});
