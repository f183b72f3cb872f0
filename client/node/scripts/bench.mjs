// Throughput of this client beside node-redis: the same operations, keys, values and numbers under way. See ../bench.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { cpus } from 'node:os';
import { createInterface } from 'node:readline';
import { createClient } from 'redis';
import { TimecacheClient, op } from 'timecache';

const SECONDS = Number(process.env.BENCH_SECONDS ?? 2);
const KEYS = 100_000;
const BATCH = 100;
const keys = Array.from({ length: KEYS }, (_, i) => `key:${i}`.padEnd(16, '.'));
const value = Buffer.alloc(64, 'v');

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

/** Starts a program, and waits for a line of its log. Returns the program and what was matched. */
async function start(program, args, stream, ready) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  for await (const line of createInterface({ input: child[stream] })) {
    const found = ready.exec(line);
    if (!found) continue;
    child.stdout.resume();
    child.stderr.resume();
    return { child, found };
  }
  throw new Error(`${program} did not start`);
}

/** Operations a second, with so many under way: each loop awaits its own before the next. */
async function measure(depth, perCall, call) {
  const run = async (seconds) => {
    const end = performance.now() + seconds * 1000;
    let calls = 0;
    let next = 0;
    const loop = async () => {
      while (performance.now() < end) {
        await call((next += perCall) % KEYS);
        ++calls;
      }
    };
    const begin = performance.now();
    await Promise.all(Array.from({ length: depth }, loop));
    return ((calls * perCall) / (performance.now() - begin)) * 1000;
  };
  await run(SECONDS / 4);
  return run(SECONDS);
}

const port = await freePort();
const [{ child: timecached, found }, { child: redisServer }] = await Promise.all([
  start(
    process.env.TIMECACHED,
    ['--listen', '127.0.0.1:0', '--log-format', 'json'],
    'stderr',
    /server_started.*?"address":"([^"]+)"/,
  ),
  start(
    process.env.REDIS_SERVER ?? 'redis-server',
    ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
    'stdout',
    /Ready to accept connections/,
  ),
]);
const client = new TimecacheClient(found[1], { namespace: 'bench' });
const redis = createClient({ url: `redis://127.0.0.1:${port}` });
try {
  await client.createNamespace('bench', { ttlMs: 600_000 });
  await redis.connect();
  const pipeline = client.pipeline();
  const batches = Array.from({ length: KEYS / BATCH }, (_, i) => keys.slice(i * BATCH, (i + 1) * BATCH));
  const slice = (i) => batches[Math.floor(i / BATCH) % batches.length];
  const rows = [];
  const row = async (what, depth, perCall, ours, theirs) => {
    const [timecache, peer] = [await measure(depth, perCall, ours), await measure(depth, perCall, theirs)];
    rows.push({ what, timecache, peer });
    const [a, b] = [timecache, peer].map((rate) => `${(rate / 1000).toFixed(1).padStart(8)} k/s`);
    console.log(`| ${what.padEnd(34)} | ${a} | ${b} | ${(timecache / peer).toFixed(2).padStart(5)} |`);
  };
  console.log(
    `node ${process.version}, ${cpus().length} x ${cpus()[0].model}; 16 B keys, 64 B values, ${SECONDS} s a row\n`,
  );
  console.log(`| ${''.padEnd(34)} |    timecache |   node-redis | ratio |`);
  console.log(`|${'-'.repeat(36)}|--------------|--------------|-------|`);
  const set = (i) => redis.set(keys[i], value, { EX: 600 });
  const get = (i) => redis.get(keys[i]);
  for (const depth of [1, 16]) {
    await row(`put, ${depth} under way`, depth, 1, (i) => client.put(keys[i], value), set);
    await row(`get, ${depth} under way`, depth, 1, (i) => client.get(keys[i]), get);
  }
  await row('put, pipeline, 100 under way', 100, 1, (i) => pipeline.add(op.put(keys[i], value)), set);
  await row('get, pipeline, 100 under way', 100, 1, (i) => pipeline.add(op.get(keys[i])), get);
  await row(
    'put, execute of 100 (MULTI)',
    1,
    BATCH,
    (i) => client.execute(slice(i).map((key) => op.put(key, value))),
    (i) =>
      slice(i)
        .reduce((multi, key) => multi.set(key, value, { EX: 600 }), redis.multi())
        .execAsPipeline(),
  );
  await row(
    'get, execute of 100 (MULTI)',
    1,
    BATCH,
    (i) => client.execute(slice(i).map((key) => op.get(key))),
    (i) =>
      slice(i)
        .reduce((multi, key) => multi.get(key), redis.multi())
        .execAsPipeline(),
  );
  await pipeline.close();
} finally {
  redis.destroy();
  client.close();
  for (const child of [timecached, redisServer]) {
    const exit = once(child, 'exit');
    child.kill('SIGTERM');
    await exit;
  }
}
