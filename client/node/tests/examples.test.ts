import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { TimecachedStore, countVisits, type SessionData } from '../examples/express_session.js';
import { Orders } from '../examples/orders.js';
import { SessionStore } from '../examples/session_store.js';
import { eventually, freshNamespace, startFixture, type Fixture } from './support.js';

let fixture: Fixture;
before(async () => {
  fixture = await startFixture();
});
after(() => fixture.stop());

test('orders that are not paid within 15 minutes are cancelled, once', async () => {
  const { client, clock } = fixture;
  const orders = await Orders.open(client);
  await Orders.open(client); // It is there.
  const cancelled: string[] = [];
  let failures = 0;
  const cancel = async (id: string, { customer, total }: { customer: string; total: number }) => {
    if (id === 'o2' && failures++ === 0) throw new Error('the shop does not answer');
    cancelled.push(`${id} ${customer} ${total}`);
  };
  const workers = [orders.work(cancel), orders.work(cancel)];
  for (let i = 1; i <= 4; ++i) await orders.place(`o${i}`, { customer: `c${i}`, total: i * 10 });
  await clock.advance(14 * 60_000);
  assert.equal(await orders.pay('o1'), true);
  assert.equal(await orders.pay('o3'), true);
  await clock.advance(2 * 60_000);
  assert.equal(await orders.pay('o4'), false);
  await eventually(() => failures === 1 && cancelled.length === 1);
  await eventually(async () => {
    await clock.advance(1_000);
    return cancelled.length === 2;
  });
  await Promise.all(workers.map((worker) => worker.stop()));
  assert.deepEqual(cancelled.sort(), ['o2 c2 20', 'o4 c4 40']);
});

/** Runs an example to its end, and returns what it printed. */
async function runExample(name: string, ...args: string[]): Promise<string> {
  const program = join(__dirname, `../examples/${name}.js`);
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.on('data', (data: Buffer) => (output += String(data)));
  assert.equal((await once(child, 'close'))[0], 0, output);
  return output;
}

test('the programs of the examples run', async () => {
  const { client, clock } = fixture;
  const server = ['--server', client.address];
  await runExample('orders', ...server, 'place', 'p1', 'ann', '10');
  await runExample('orders', ...server, 'place', 'p2', 'bob', '20');
  assert.equal(await runExample('orders', ...server, 'pay', 'p1'), 'p1 is paid\n');
  // Longer than the events are retained: the group keeps them for the first worker.
  await clock.advance(24 * 60 * 60_000);
  const program = join(__dirname, '../examples/orders.js');
  const child = spawn(process.execPath, [program, ...server, 'work'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (data: Buffer) => (output += String(data)));
  const exit = once(child, 'close');
  await eventually(() => output !== '');
  child.kill('SIGTERM');
  assert.equal((await exit)[0], 0);
  assert.equal(output, 'cancelled p2: bob did not pay 20\n');
  assert.equal(
    await runExample('session_store', client.address),
    "{ user: 'ann', basket: [ 'tea' ] }\nundefined\n",
  );
});

test('a session lives for half an hour after its last use, and its end says what it held', async () => {
  const { client, clock } = fixture;
  const store = await SessionStore.open(client);
  const ended = store.ended();
  const first = ended.next();
  await eventually(async () => {
    const { statistics } = await client.getNamespace('sessions', { includeStatistics: true });
    return statistics?.watchers === 1;
  });
  assert.equal(await store.begin('s1', { user: 'ann', basket: [] }), true);
  assert.equal(await store.begin('s1', { user: 'bob', basket: [] }), false);
  await clock.advance(20 * 60_000);
  const add = (item: string) =>
    store.update('s1', ({ user, basket }) => ({ user, basket: [...basket, item] }));
  await Promise.all([add('tea'), add('cup')]);
  await clock.advance(20 * 60_000);
  assert.equal((await store.read('s1'))?.basket.length, 2);
  await clock.advance(20 * 60_000);
  assert.equal((await store.read('s1'))?.user, 'ann');
  await clock.advance(31 * 60_000);
  assert.equal(await store.read('s1'), undefined);
  assert.equal(await add('milk'), undefined);
  const { value } = await first;
  assert.deepEqual(
    [value?.id, value?.session.user, value?.session.basket.sort()],
    ['s1', 'ann', ['cup', 'tea']],
  );
  await ended.return(undefined);
});

test('express-session keeps its sessions, renews them, and is told when one has ended', async () => {
  const { client, clock } = fixture;
  const store = await TimecachedStore.open(client);
  await TimecachedStore.open(client); // It is there.
  const ended = store.ended();
  const first = ended.next();
  await eventually(async () => {
    const { statistics } = await client.getNamespace('express-sessions', { includeStatistics: true });
    return statistics?.watchers === 1;
  });
  const http = countVisits(store, 'secret', 30 * 60_000);
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const { port } = http.address() as AddressInfo;
  let cookie = '';
  const visit = async (path = '/') => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { cookie } });
    cookie = response.headers.get('set-cookie')?.split(';')[0] ?? cookie;
    return (await response.text()).trim();
  };
  assert.deepEqual([await visit(), await visit()], ['visit 1', 'visit 2']);
  await clock.advance(20 * 60_000);
  assert.equal(await visit(), 'visit 3');
  await clock.advance(20 * 60_000); // Longer than maxAge since it began.
  assert.equal(await visit(), 'visit 4');
  const sessions = await new Promise<SessionData[]>((resolve) => store.all((_, all) => resolve(all!)));
  assert.deepEqual([sessions.length, sessions[0]!['visits']], [1, 4]);
  await clock.advance(32 * 60_000);
  const { value } = await first;
  assert.equal(value!.session['visits'], 4);
  assert.equal(await visit(), 'visit 1');
  assert.equal(await visit('/bye'), 'bye');
  const length = await new Promise<number>((resolve) => store.length((_, count) => resolve(count!)));
  assert.equal(length, 0);
  await ended.return(undefined);
  http.closeAllConnections();
  http.close();
});

test('the member prints what it acknowledges, and ends after its count or on SIGTERM', async () => {
  const client = await freshNamespace(fixture.client);
  await client.createGroup('g');
  const start = (count: number) => {
    const program = join(__dirname, '../examples/member.js');
    const args = [program, client.address, client.defaultNamespace, 'g', `${count}`];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const lines: string[] = [];
    createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
    return { child, lines, exit: once(child, 'close') };
  };
  for (const key of ['a', 'b', 'c']) await client.put(key, Buffer.from([0, 255]));
  await fixture.clock.advance(11_000);
  const first = start(2);
  assert.equal((await first.exit)[0], 0);
  const second = start(5);
  await eventually(() => second.lines.length === 1);
  second.child.kill('SIGTERM');
  assert.equal((await second.exit)[0], 0);
  // The attempt of what the first one was given beyond its count, and has not begun, counts.
  const lines = [...first.lines, ...second.lines].map((line) => line.replace(/\t[12]$/, ''));
  assert.deepEqual(lines.sort(), ['a\t00ff', 'b\t00ff', 'c\t00ff']);
  const { statistics } = await client.getGroup('g', { includeStatistics: true });
  assert.deepEqual([statistics?.acked, statistics?.backlog], [3, 0]);
});
