// A member of a consumer group for shell scripts: prints one line for each event, KEY<TAB>VALUE-as-hex<TAB>ATTEMPT, and
// acknowledges it. Ends after COUNT events, or on SIGTERM, once what it took is settled.

import { writeSync } from 'node:fs';
import { TimecacheClient } from 'timecached';

const [address, namespace, group, count] = process.argv.slice(2);
if (!address || !namespace || !group || !(Number(count) > 0)) {
  console.error('usage: member ADDRESS NAMESPACE GROUP COUNT');
  process.exit(2);
}

const client = new TimecacheClient(address, { namespace });
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
let left = Number(count);

// One at a time, so that no event is taken beyond the count.
const worker = client.worker({ group, concurrency: 1, maxInFlight: 1, signal: stop.signal }, (event) => {
  writeSync(1, `${event.key}\t${event.value.toString('hex')}\t${event.attempt}\n`);
  if (--left === 0) stop.abort();
});

worker.finished
  .catch((error: unknown) => {
    console.error(String(error));
    process.exitCode = 1;
  })
  .finally(() => client.close());
