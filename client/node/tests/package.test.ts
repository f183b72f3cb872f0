// The package as users install it, and every sample of the README, run word for word but for the server's port.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { eventually, makeTemporaryDirectory, startFixture, type Fixture } from './support.js';

const run = promisify(execFile);
const root = join(__dirname, '../..');
const samples = [...readFileSync(join(root, 'README.md'), 'utf8').matchAll(/^```(js|ts)\n(.*?)^```/gms)].map(
  (match) => match[2]!,
);

let fixture: Fixture;
let project: ReturnType<typeof makeTemporaryDirectory>;

before(async () => {
  fixture = await startFixture();
  project = makeTemporaryDirectory();
  const npm = (args: readonly string[], cwd: string) =>
    run('npm', [...args, '--silent', '--no-audit', '--no-fund'], { cwd });
  await npm(['pack', '--pack-destination', project.path], root);
  writeFileSync(join(project.path, 'package.json'), '{"private": true}');
  await npm(['install', '--prefer-offline', './timecached-0.1.0.tgz'], project.path);
});
after(async () => {
  project.remove();
  await fixture.stop();
});

/** Runs a program in the project, while time goes on. Returns what it printed. */
async function runProgram(name: string, text: string): Promise<string> {
  const path = join(project.path, name);
  writeFileSync(path, text.replaceAll('127.0.0.1:7171', fixture.server.address));
  const child = spawn(process.execPath, [path], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (data) => (output += data));
  child.stderr.on('data', (data) => (output += data));
  const exit = once(child, 'exit');
  await eventually(async () => {
    await fixture.clock.advance(100);
    return child.exitCode !== null;
  }, 120_000);
  const [code] = await exit;
  assert.equal(code, 0, output);
  return output;
}

test('ECMAScript modules and CommonJS get the same package', async () => {
  const esm = `import { TimecacheClient, op, ack } from 'timecached';
    import { createRequire } from 'node:module';
    console.log(TimecacheClient === createRequire(import.meta.url)('timecached').TimecacheClient, typeof op.put, ack().action);`;
  assert.equal(await runProgram('esm.mjs', esm), 'true function ack\n');
  const cjs = `const { TimecacheClient } = require('timecached');
    const client = new TimecacheClient('127.0.0.1:7171');
    client.isServing().then((serving) => { console.log(serving); client.close(); });`;
  assert.equal(await runProgram('cjs.cjs', cjs), 'true\n');
});

test("the README's samples do what they say", async () => {
  assert.ok(samples.length >= 5);
  for (const [i, sample] of samples.entries()) {
    const output = await runProgram(`sample${i}.mjs`, sample);
    const expected = [...sample.matchAll(/\/\/ prints: (.*)/g)].map((match) => match[1]);
    assert.deepEqual(output.split('\n').slice(0, -1), expected, sample);
  }
});

test("the README's samples are TypeScript, too", async () => {
  const files = samples.map((sample, i) => {
    writeFileSync(join(project.path, `sample${i}.mts`), sample);
    return `sample${i}.mts`;
  });
  const flags = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'nodenext', '--types', 'node'];
  const typeRoots = ['--typeRoots', join(root, 'node_modules/@types')];
  await run(join(root, 'node_modules/.bin/tsc'), [...flags, ...typeRoots, ...files], {
    cwd: project.path,
  }).catch((error: { stdout: string }) => assert.fail(error.stdout));
});
