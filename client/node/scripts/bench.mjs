// Measures this client beside node-redis, for bench/clients/run.py, which says what the rows are. Arguments: ADDRESS
// REDIS_PORT SECONDS.

import { createClient } from 'redis';
import { TimecacheClient, op } from 'timecached';

const [address, port, seconds] = [process.argv[2], process.argv[3], Number(process.argv[4])];
const KEYS = 100_000;
const DEPTH = 100;
const TTL_SECONDS = 600;
const keys = Array.from({ length: KEYS }, (_, i) => `key-${`${i}`.padStart(12, '0')}`);
const value = Buffer.alloc(64, 'v');
const put = (key) => op.put(key, value, { ttlMs: TTL_SECONDS * 1000 });

/** Operations a second, and microseconds of CPU for one: so many loops, each of which awaits its call before the next. */
async function rate(loops, each, call, limit) {
  const [begin, cpu] = [performance.now(), process.cpuUsage()];
  const end = begin + limit * 1000;
  let count = 0;
  const loop = async (_, n) => {
    for (let i = Math.floor((n * KEYS) / loops); performance.now() < end; i += each) {
      await call(i % KEYS);
      count += each;
    }
  };
  await Promise.all(Array.from({ length: loops }, loop));
  const { user, system } = process.cpuUsage(cpu);
  return [(count / (performance.now() - begin)) * 1000, (user + system) / count];
}

async function row(name, loops, each, ours, peers) {
  const figures = [];
  for (const call of [ours, peers]) await rate(loops, each, call, seconds / 4);
  for (const call of [ours, peers]) figures.push(...(await rate(loops, each, call, seconds)));
  console.log([name, ...figures.map((figure) => figure.toFixed(3))].join('\t'));
}

const client = new TimecacheClient(address);
const redis = createClient({ url: `redis://127.0.0.1:${port}` });
await redis.connect();
const pipeline = client.pipeline();
const some = (i) => Array.from({ length: DEPTH }, (_, j) => keys[(i + j) % KEYS]);
const set = (key) => redis.set(key, value, { EX: TTL_SECONDS });
const get = (key) => redis.get(key);
const all = (one) => (i) => Promise.all(some(i).map(one));
const execute = (make) => (i) => client.execute(some(i).map((key) => make(key)));

const plain = async (name, loops, options) => {
  const own = { ...options, ttlMs: TTL_SECONDS * 1000 };
  const [ourPut, ourGet] = [(i) => client.put(keys[i], value, own), (i) => client.get(keys[i], options)];
  await row(`put ${name}`, loops, 1, ourPut, (i) => set(keys[i]));
  await row(`get ${name}`, loops, 1, ourGet, (i) => get(keys[i]));
};
for (const loops of [1, 16, 64, 256]) await plain(loops, loops, {});
await plain('unary 16', 16, { batching: false });
// node-redis sends what is begun in one turn of the event loop together.
await row('put batch', 1, DEPTH, execute(put), all(set));
await row('get batch', 1, DEPTH, execute(op.get), all(get));
const piped = (make) => (key) => pipeline.add(make(key));
await row('put pipeline', 1, DEPTH, all(piped(put)), all(set));
await row('get pipeline', 1, DEPTH, all(piped(op.get)), all(get));
const each = (one) => (i) => one(keys[i]);
await row('put stream', DEPTH, 1, each(piped(put)), each(set));
await row('get stream', DEPTH, 1, each(piped(op.get)), each(get));
await pipeline.close();
redis.destroy();
client.close();
