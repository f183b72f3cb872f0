// TLS, certificates and tokens.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  TimecacheClient,
  ack,
  type CommonWatchOptions,
  type TimecacheError,
  type TlsOptions,
} from 'timecached';
import { eventually, keysOf, makeTemporaryDirectory, readTo, readToEvents, TestServer } from './support.js';

const TOKEN = 'a-token-of-the-tests-0123456789abcdef';

let directory: ReturnType<typeof makeTemporaryDirectory>;
let server: TestServer;
const pem = (name: string) => readFileSync(join(directory.path, name));

/** Makes a key and a certificate; without `ca`, one that signs itself. */
function makeCertificate(name: string, subject: string, ca?: string): void {
  const options = { cwd: directory.path, stdio: 'ignore' } as const;
  const key = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-keyout',
    `${name}.key`,
  ];
  const from = ca ? ['-CA', `${ca}.crt`, '-CAkey', `${ca}.key`, '-addext', 'basicConstraints=CA:FALSE'] : [];
  const names = ca ? ['-addext', `subjectAltName=${subject}`] : [];
  const out = ['-subj', `/CN=${name}`, '-days', '2', '-out', `${name}.crt`];
  execFileSync('openssl', ['req', '-x509', ...key, ...from, ...names, ...out], options);
}

async function startServer(address: string): Promise<void> {
  const config = join(directory.path, 'timecached.yaml');
  writeFileSync(
    config,
    `listeners:
  - address: ${address}
    tls:
      certificate_file: ${directory.path}/server.crt
      key_file: ${directory.path}/server.key
      client_ca_file: ${directory.path}/ca.crt
      client_certificate: optional
access:
  file: ${directory.path}/access.yaml
`,
  );
  server = await TestServer.start(['--config', config]);
}

before(async () => {
  directory = makeTemporaryDirectory();
  makeCertificate('ca', '');
  makeCertificate('server', 'DNS:cache.example', 'ca');
  makeCertificate('client', 'URI:spiffe://test/billing', 'ca');
  makeCertificate('unknown', 'URI:spiffe://test/unknown', 'ca');
  writeFileSync(
    join(directory.path, 'access.yaml'),
    `principals:
  - name: billing
    certificate_sans: ["spiffe://test/billing"]
  - name: reader
    token_sha256: ["${createHash('sha256').update(TOKEN).digest('hex')}"]
rules:
  - principals: [billing]
    namespaces: ["*"]
    verbs: [read, write]
  - principals: [reader]
    namespaces: ["*"]
    verbs: [read]
`,
  );
  await startServer('127.0.0.1:0');
});
after(async () => {
  await server.stop();
  directory.remove();
});

test('a certificate says who calls', async () => {
  const tls = {
    ca: pem('ca.crt'),
    cert: pem('client.crt'),
    key: pem('client.key'),
    serverName: 'cache.example',
  };
  const client = new TimecacheClient(server.address, { tls });
  await client.put('a', '1');
  assert.equal(await client.getText('a'), '1');
  client.close();
});

test('certificates in files may be renewed while the client runs', async () => {
  const file = (name: string) => join(directory.path, name);
  const install = (name: string) => {
    for (const kind of ['crt', 'key']) copyFileSync(file(`${name}.${kind}`), file(`own.${kind}`));
  };
  const tls = { caFile: file('ca.crt'), certFile: file('own.crt'), keyFile: file('own.key') };
  install('unknown');
  const client = new TimecacheClient(server.address, { tls: { ...tls, serverName: 'cache.example' } });
  await assert.rejects(client.get('a'), { reason: 'UNKNOWN_CERTIFICATE' });
  install('client');
  // The connection that stands has the old one.
  await assert.rejects(client.get('a'), { reason: 'UNKNOWN_CERTIFICATE' });
  await server.stop();
  await startServer(server.address);
  await eventually(() =>
    client.put('a', '1').then(
      () => true,
      (error: TimecacheError) => error.code !== 'UNAVAILABLE' && assert.fail(error),
    ),
  );
  client.close();

  const make = (options: TlsOptions) => () => new TimecacheClient(server.address, { tls: options });
  assert.throws(make({ caFile: file('absent') }), /ENOENT.*absent/);
  assert.throws(make({ ca: 'x', caFile: file('ca.crt') }), TypeError);
  assert.throws(make({ certFile: file('own.crt') }), TypeError);
});

test('a token says who calls, also one that changes', async () => {
  const tls = { ca: pem('ca.crt'), serverName: 'cache.example' };
  const client = new TimecacheClient(server.address, { tls, token: TOKEN });
  await client.get('a');
  await assert.rejects(client.put('a', '2'), {
    code: 'PERMISSION_DENIED',
    reason: 'ACCESS_DENIED',
    metadata: { principal: 'reader', namespace: 'default', verb: 'write' },
  });
  client.close();
  let token = 'unknown';
  const changing = new TimecacheClient(server.address, { tls, token: () => Promise.resolve(token) });
  await assert.rejects(changing.get('a'), { code: 'UNAUTHENTICATED', reason: 'UNKNOWN_TOKEN' });
  token = TOKEN;
  await changing.get('a');
  for await (const entry of changing.scan()) assert.ok(entry);
  changing.close();
});

test('without credentials, or to a server that is not trusted, there is no access', async () => {
  const tls = { ca: pem('ca.crt'), serverName: 'cache.example' };
  const nobody = new TimecacheClient(server.address, { tls });
  await assert.rejects(nobody.get('a'), { code: 'UNAUTHENTICATED', reason: 'NO_CREDENTIALS' });
  nobody.close();
  for (const options of [{ tls: true }, { tls: { ...tls, serverName: 'other.example' } }, {}]) {
    const client = new TimecacheClient(server.address, options);
    await assert.rejects(client.get('a'), { code: 'UNAVAILABLE', reason: undefined });
    client.close();
  }
});

test('a token does not go to another machine in plain text', () => {
  const token = TOKEN;
  assert.throws(() => new TimecacheClient('cache.example:7171', { token }), TypeError);
  assert.throws(() => new TimecacheClient('127.0.0.1.example:7171', { token }), TypeError);
  new TimecacheClient('cache.example:7171', { token, allowPlaintextToken: true }).close();
  for (const address of ['localhost:1', '127.0.0.1:1', '[::1]:1', 'unix:/run/timecached.sock']) {
    new TimecacheClient(address, { token }).close();
  }
  assert.throws(() => new TimecacheClient('cache.example:7171', { tls: { cert: 'x' } }), TypeError);
});

/** A server in plain text where the holder of one of the tokens may do everything; `accept` replaces the tokens. */
async function startGuarded() {
  const { path, remove } = makeTemporaryDirectory();
  const accept = (...tokens: string[]) => {
    const digests = tokens.map((token) => createHash('sha256').update(token).digest('hex'));
    writeFileSync(
      join(path, 'access.part'),
      `principals: [{name: member, token_sha256: [${digests.join()}]}]
rules: [{principals: [member], namespaces: ["*"], verbs: [read, write, watch, settle, admin]}]
`,
    );
    renameSync(join(path, 'access.part'), join(path, 'access.yaml'));
  };
  accept(TOKEN);
  const config = join(path, 'timecached.yaml');
  writeFileSync(config, `listeners: [{address: "127.0.0.1:0"}]\naccess: {file: ${path}/access.yaml}\n`);
  const guarded = await TestServer.start(['--config', config]);
  const stop = async () => {
    await guarded.stop();
    remove();
  };
  return { guarded, accept, stop };
}

const NEXT_TOKEN = `${TOKEN}-next`;
const LIMITED = { timeout: 120_000 };

test('what is open goes on with the token that takes the place of its own', LIMITED, async () => {
  const { guarded, accept, stop } = await startGuarded();
  let token = TOKEN;
  const client = guarded.client({ token: () => token });
  const breaks: string[][] = [];
  // The new token is tried at once: nothing here waits for the pause.
  const options = (): CommonWatchOptions => {
    const own: string[] = [];
    breaks.push(own);
    return { onBreak: ({ code, reason }) => own.push(`${code} ${reason}`), minPauseMs: 3_600_000 };
  };
  const watcher = client.watch(options());
  const member = client.consume({ group: 'members', ...options() });
  // What dies at once may be told as going to die, too, if it does not die before.
  const expiring = client.watchExpiring({ leadTimeMs: 3_600_000, keyPrefix: 'alive', ...options() });
  for (const each of [watcher, member, expiring]) await each.next();
  const handled: string[] = [];
  const errors: string[] = [];
  const worker = client.worker(
    {
      group: 'workers',
      minPauseMs: 3_600_000,
      onError: (error) => errors.push((error as TimecacheError).code),
    },
    ({ key }) => void handled.push(key.toString()),
  );
  await eventually(async () => {
    const group = await client.getGroup('workers', { includeStatistics: true }).catch(() => undefined);
    return group?.statistics?.members === 1;
  });
  await client.put('alive', '1', { ttlMs: 600_000 });
  await client.put('a', '1', { ttlMs: 1 });
  assert.deepEqual(keysOf(await readToEvents(expiring)), ['alive']);
  assert.deepEqual(keysOf(await readToEvents(watcher)), ['a']);
  const [given] = (await readToEvents(member)).flatMap(({ events }) => events);
  assert.equal(given!.key.toString(), 'a');
  // Else it would be given out again.
  await client.settle('members', [{ deliveryToken: given!.deliveryToken, how: ack() }]);
  await eventually(() => worker.counters.acked === 1);

  token = NEXT_TOKEN;
  accept(NEXT_TOKEN);
  const again = await readToEvents(expiring);
  assert.deepEqual([keysOf(again), again.some(({ reconnected }) => reconnected)], [['alive'], true]);
  for (const each of [watcher, member])
    assert.deepEqual(keysOf(await readTo(each, ({ reconnected }) => reconnected)), []);
  await eventually(() => errors.length > 0);
  await client.put('b', '1', { ttlMs: 1 });
  for (const each of [watcher, member]) assert.deepEqual(keysOf(await readToEvents(each)), ['b']);
  for (const each of [watcher, member, expiring]) each.close();
  await eventually(() => worker.counters.acked === 2);
  await worker.stop();
  assert.deepEqual(handled, ['a', 'b']);
  assert.deepEqual(breaks, Array(3).fill(['UNAUTHENTICATED UNKNOWN_TOKEN']));
  assert.deepEqual(errors, ['UNAUTHENTICATED']);
  client.close();
  await stop();
});

test('a watch without another token ends, and one whose token does not come yet waits for it', async () => {
  const { guarded, accept, stop } = await startGuarded();
  let token: string | undefined = TOKEN;
  let failures = 0;
  const late = () => {
    if (token !== undefined) return token;
    ++failures;
    throw new Error('not yet');
  };
  const clients = [TOKEN, () => TOKEN, late].map((token) => guarded.client({ token }));
  const watchers = clients.map((client) => client.watch({ minPauseMs: 1 }));
  for (const watcher of watchers) await watcher.next();
  token = undefined;
  accept(NEXT_TOKEN);
  const [fixed, same, waiting] = watchers;
  for (const watcher of [fixed!, same!]) {
    const end = readTo(watcher, () => false);
    await assert.rejects(end, { code: 'UNAUTHENTICATED', reason: 'UNKNOWN_TOKEN' });
  }
  const again = readTo(waiting!, ({ reconnected }) => reconnected);
  await eventually(() => failures >= 2);
  token = NEXT_TOKEN;
  await again;
  waiting!.close();
  for (const client of clients) client.close();
  await stop();
});

test('a function with ever another token that is refused ends the watch', LIMITED, async () => {
  const { guarded, stop } = await startGuarded();
  let asked = 0;
  const client = guarded.client({ token: () => `unknown-${++asked}` });
  await assert.rejects(client.watch({ waitForServer: true }).next(), { reason: 'UNKNOWN_TOKEN' });
  // For the first attempt, whether there is another token, and for the second attempt.
  assert.equal(asked, 3);
  client.close();
  await stop();
});
