// Does what tests/clients/cross_test.py says, so that clients in several languages meet: client/python/tests/peer.py
// describes the lines that this reads and writes. Arguments: ADDRESS NAMESPACE.

import { createInterface } from 'node:readline';
import { TimecacheClient, type GatheredParts } from 'timecached';

const [address, namespace] = process.argv.slice(2);
const client = new TimecacheClient(address!, { namespace: namespace!, timeoutMs: 60_000 });

const toHex = (value: Buffer): string => value.toString('hex') || '-';
const fromHex = (word: string): Buffer => (word === '-' ? Buffer.alloc(0) : Buffer.from(word, 'hex'));

function shown({ value, parts }: { value: Buffer; parts?: GatheredParts | undefined }): string {
  return parts
    ? parts.parts.map((part) => `${toHex(part.name)}:${toHex(part.value)}`).join(',')
    : toHex(value);
}

async function expired(count: number): Promise<string> {
  const events: string[] = [];
  for await (const batch of client.watch({ start: 'EARLIEST' })) {
    events.push(...batch.events.map((event) => `${toHex(event.key)}=${shown(event)}`));
    if (events.length >= count) break;
  }
  return events.join(' ');
}

async function perform(name: string, words: string[]): Promise<string> {
  if (name === 'expired') return expired(Number(words[0]));
  const [key, second, third] = words.slice(0, 3).map(fromHex) as [Buffer, Buffer, Buffer];
  switch (name) {
    case 'put':
      await client.put(key, second);
      return 'done';
    case 'get': {
      const entry = await client.get(key);
      return entry ? shown(entry) : 'none';
    }
    case 'append':
      return `${(await client.append(key, second)).valueBytes}`;
    case 'combine':
      return `${(await client.combine(key, { add: BigInt(words[1]!) })).result}`;
    case 'gather': {
      const { parts } = await client.gather(key, second, third, { expectedParts: Number(words[3]) });
      return parts
        ? parts.parts.map((part) => `${toHex(part.name)}=${toHex(part.value)}`).join(' ')
        : 'waiting';
    }
  }
  throw new Error(name);
}

async function main(): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const [name, ...words] = line.split(' ');
    process.stdout.write(`${await perform(name!, words)}\n`);
  }
  client.close();
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
