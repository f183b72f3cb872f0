// Runs the scenarios of tests/conformance, whose README.md says what they mean. CONFORMANCE names their directory.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  TimecacheError,
  ack,
  decodeDeadLetter,
  extend,
  nack,
  op,
  putBack,
  terminate,
  type ChangeBatch,
  type ChangeEvent,
  type CommonBatch,
  type ExpiredEvent,
  type GroupPosition,
  type GroupWorker,
  type Operation,
  type Settle,
  type TimecacheClient,
  type Watcher,
} from 'timecached';
import { RecipeSteps } from './recipe_steps.js';
import { bytes, camel, checkNames, isObject, milliseconds, type Fields, type Json } from './scenarios.js';
import { eventually, startFixture, type Fixture } from './support.js';

interface Scenario {
  name: string;
  about?: string;
  namespaces?: { [name: string]: Fields };
  steps: Fields[];
}

const directory = process.env['CONFORMANCE'] ?? '';
const HOUR_MS = 3_600_000;

// Plain calls share a stream, or are RPCs of their own.
const ways = [true, false];
let fixtures: Fixture[];
before(async () => {
  fixtures = await Promise.all(ways.map((batching) => startFixture([], { batching })));
});
after(() => Promise.all(fixtures.map((fixture) => fixture.stop())));

const files = ['', 'recipes'].flatMap((below) =>
  readdirSync(join(directory, below))
    .sort()
    .filter((name) => name.endsWith('.json'))
    .map((name) => join(below, name)),
);
for (const file of files) {
  const content = JSON.parse(readFileSync(join(directory, file), 'utf8')) as { scenarios: Scenario[] };
  for (const scenario of content.scenarios) {
    for (const [i, batching] of ways.entries()) {
      const name = `${file}: ${scenario.name}${batching ? '' : ', without batching'}`;
      test(name, () => new Run(scenario, fixtures[i]!).run());
    }
  }
}

const DURATIONS = [
  ...[
    'ttl',
    'max_ttl',
    'event_retention',
    'unused_group_ttl',
    'ack_timeout',
    'unused_ttl',
    'heartbeat_interval',
  ],
  ...[
    'lead_time',
    'retry_delay',
    'max_retry_delay',
    'delay',
    'max_life',
    'within',
    'remember',
    'idempotency_window',
    'change_retention',
    'wait',
  ],
];
const DURATION_LISTS = ['retry_delays'];
const BYTES = [
  'key',
  'value',
  'part',
  'key_prefix',
  'expected_names',
  'resume_tokens',
  'idempotency_id',
  'delivery_token',
  'resume_token',
];
const INT64 = ['add', 'xor', 'initial'];

/** The fields of an answer by their names in the proto. */
function field(answer: object, name: string): { value: unknown; isDuration: boolean } {
  const fields = answer as Record<string, unknown>;
  for (const known of [name, camel(name)]) {
    if (known in fields) return { value: fields[known], isDuration: false };
  }
  if (`${camel(name)}Ms` in fields) return { value: fields[`${camel(name)}Ms`], isDuration: true };
  return assert.fail(`the runner does not know "${name}" of ${Object.keys(fields).join(', ')}`);
}

function isDefault(value: unknown): boolean {
  if (value === undefined || value === 0 || value === 0n || value === false || value === '') return true;
  return (Array.isArray(value) || Buffer.isBuffer(value)) && value.length === 0;
}

/** One scenario. */
class Run {
  readonly #watches = new Map<string, Reader>();
  readonly #workers = new Map<string, HandlingWorker>();
  readonly #saved = new Map<string, unknown>();
  readonly #recipes: RecipeSteps;
  #start = 0;

  constructor(
    private readonly scenario: Scenario,
    private readonly fixture: Fixture,
  ) {
    this.#recipes = new RecipeSteps(fixture.client.namespace('main'), (watch) => this.#readAll(watch));
  }

  async run(): Promise<void> {
    const { client, clock } = this.fixture;
    checkNames(this.scenario, ['name', 'about', 'namespaces', 'steps']);
    this.#start = await clock.advanceTo(Math.ceil(((await clock.now()) + 1) / HOUR_MS) * HOUR_MS);
    const namespaces = Object.entries(this.scenario.namespaces ?? { main: {} });
    for (const [name, options] of namespaces) {
      await this.#deleteNamespace(name);
      await client.createNamespace(name, this.#args(options));
    }
    try {
      for (const [i, step] of this.scenario.steps.entries()) {
        await this.#step(step).catch((error: Error) => {
          throw new Error(`step ${i}: ${error.message}`, { cause: error });
        });
      }
    } finally {
      for (const watch of this.#watches.values()) watch.watcher.close();
      await Promise.allSettled([...this.#workers.values()].map(({ worker }) => worker.stop()));
      for (const [name] of namespaces) await this.#deleteNamespace(name);
    }
  }

  async #deleteNamespace(name: string): Promise<void> {
    await this.fixture.client.deleteNamespace(name).catch((error: TimecacheError) => {
      if (error.reason !== 'NAMESPACE_NOT_FOUND') throw error;
    });
  }

  async #step(step: Fields): Promise<void> {
    if ('call' in step) return this.#call(step);
    if ('do' in step) return this.#do(step);
    if ('recipe' in step) {
      checkNames(step, ['recipe', 'as', 'args']);
      return this.#recipes.make(step['recipe'] as string, step['as'] as string, step['args'] as Fields);
    }
    if ('advance' in step) {
      checkNames(step, ['advance']);
      await this.fixture.clock.advance(milliseconds(step['advance']!));
      return;
    }
    if ('watch' in step) return this.#watch('watch', step);
    if ('watch_expiring' in step) return this.#watch('watch_expiring', step);
    if ('watch_changes' in step) return this.#watch('watch_changes', step);
    if ('member' in step) return this.#watch('member', step);
    if ('worker' in step) return this.#worker(step);
    if ('events' in step) return this.#events(step);
    if ('handled' in step) return this.#handled(step);
    checkNames(step, ['close']);
    const name = step['close'] as string;
    this.#watches.get(name)?.watcher.close();
    await this.#workers.get(name)?.worker.stop();
    assert.ok(this.#watches.delete(name) || this.#workers.delete(name));
  }

  async #call(step: Fields): Promise<void> {
    checkNames(step, ['call', 'args', 'expect', 'error', 'save', 'eventually']);
    const call =
      CALLS[step['call'] as string] ?? assert.fail(`the runner does not know the call ${step['call']}`);
    const { namespace = 'main', ...rest } = (step['args'] ?? {}) as Fields;
    checkNames(rest, call.names);
    const client = this.fixture.client.namespace(namespace as string);
    if (step['error']) return this.#fails(() => call.run(client, this.#args(rest)), step['error']);
    let answer: object = {};
    const attempt = async () => {
      answer = (await call.run(client, this.#args(rest))) ?? {};
      if (step['expect'] !== undefined) this.#match(step['expect'], answer, 'answer');
    };
    if (step['eventually'])
      await eventually(() =>
        attempt().then(
          () => true,
          () => false,
        ),
      ).catch(() => attempt());
    else await attempt();
    this.#save(step['save'], answer);
  }

  async #do(step: Fields): Promise<void> {
    checkNames(step, ['do', 'args', 'expect', 'error', 'save']);
    const attempt = () => this.#recipes.do(step['do'] as string, (step['args'] ?? {}) as Fields);
    if (step['error']) return this.#fails(attempt, step['error']);
    const answer = await attempt();
    if (step['expect'] !== undefined) this.#match(step['expect'], answer, 'answer');
    this.#save(step['save'], answer);
  }

  async #fails(attempt: () => Promise<unknown>, expected: Json): Promise<void> {
    await assert.rejects(attempt, (error: unknown) => {
      this.#match(expected, errorFields(error), 'error');
      return true;
    });
  }

  /** The arguments as the client takes them. */
  #args(fields: Fields): Arguments {
    const args: Arguments = {};
    for (const [name, json] of Object.entries(fields)) {
      if (name === 'condition') args[json === 'IF_ABSENT' ? 'ifAbsent' : 'ifPresent'] = true;
      else if (DURATIONS.includes(name)) args[`${camel(name)}Ms`] = milliseconds(json);
      else if (DURATION_LISTS.includes(name)) args[`${camel(name)}Ms`] = (json as Json[]).map(milliseconds);
      else if (name === 'traceparent') args['entryTraceparent'] = this.#argument(name, json);
      else args[camel(name)] = this.#argument(name, json);
    }
    return args;
  }

  #argument(name: string, json: Json): unknown {
    if (isObject(json) && 'var' in json) return this.#variable(json['var']!);
    if (Array.isArray(json)) return json.map((element) => this.#argument(name, element));
    if (name === 'resume_tokens') {
      return Object.fromEntries(
        Object.entries(json as Fields).map(([key, token]) => [key, this.#argument('', token)]),
      );
    }
    if (isObject(json) && 'at' in json) return this.#start + milliseconds(json['at']!);
    if (BYTES.includes(name)) return bytes(json);
    if (INT64.includes(name)) return BigInt(json as string | number);
    return isObject(json) ? this.#args(json) : json;
  }

  #variable(name: Json): unknown {
    assert.ok(this.#saved.has(name as string), `nothing was saved as ${name}`);
    return this.#saved.get(name as string);
  }

  #save(save: Json | undefined, answer: object): void {
    for (const [name, path] of Object.entries((save ?? {}) as { [name: string]: string })) {
      let value: unknown = answer;
      for (const [part] of path.matchAll(/\w+/g)) {
        value = Array.isArray(value) ? value[Number(part)] : field(value as object, part).value;
      }
      this.#saved.set(name, value);
    }
  }

  /** Throws where an answer is not as expected. */
  #match(expected: Json, actual: unknown, path: string, isDuration = false): void {
    const fail = () => assert.fail(`${path}: expected ${JSON.stringify(expected)}, got ${show(actual)}`);
    if (expected === null) return void (isDefault(actual) || fail());
    if (Array.isArray(expected)) {
      if (!Array.isArray(actual) || actual.length !== expected.length) return fail();
      for (const [i, element] of expected.entries())
        this.#match(element, actual[i], `${path}[${i}]`, isDuration);
      return;
    }
    if (!isObject(expected)) {
      if (isDuration) return void (actual === milliseconds(expected) || fail());
      if (Buffer.isBuffer(actual)) return void (actual.equals(bytes(expected)) || fail());
      if (typeof actual === 'bigint') return void (actual === BigInt(expected as string) || fail());
      if (typeof actual === 'number' && typeof expected === 'string')
        return void (actual === Number(expected) || fail());
      return void (actual === expected || fail());
    }
    if ('var' in expected) {
      const saved = this.#variable(expected['var']!);
      const same = Buffer.isBuffer(saved)
        ? Buffer.isBuffer(actual) && actual.equals(saved)
        : actual === saved;
      return void (same || fail());
    }
    if ('any' in expected) return void (isDefault(actual) && fail());
    if ('at' in expected) {
      const at = this.#start + milliseconds(expected['at']!);
      return void ((typeof actual === 'number' && Math.abs(actual - at) < 5e-4) || fail());
    }
    if ('gt' in expected) {
      const bound = isObject(expected['gt']) ? this.#variable(expected['gt']['var']!) : expected['gt'];
      return void (Number(actual) > Number(bound) || fail());
    }
    if ('hex' in expected || 'repeat' in expected) {
      return void ((Buffer.isBuffer(actual) && actual.equals(bytes(expected))) || fail());
    }
    if ('begins' in expected) {
      const begins = bytes(expected['begins']!);
      const same = Buffer.isBuffer(actual) && actual.subarray(0, begins.length).equals(begins);
      return void ((same && actual.length === expected['size']) || fail());
    }
    if ('unordered' in expected) return this.#matchUnordered(expected['unordered'] as Json[], actual, path);
    if (typeof actual !== 'object' || actual === null) return fail();
    for (const [name, value] of Object.entries(expected)) {
      const found = field(actual, name);
      this.#match(value, found.value, `${path}.${name}`, found.isDuration);
    }
  }

  #matchUnordered(expected: Json[], actual: unknown, path: string): void {
    assert.ok(Array.isArray(actual) && actual.length === expected.length, `${path}: got ${show(actual)}`);
    const left = [...(actual as unknown[])];
    for (const element of expected) {
      const i = left.findIndex((candidate) => {
        try {
          this.#match(element, candidate, path);
          return true;
        } catch {
          return false;
        }
      });
      assert.ok(i >= 0, `${path}: no ${JSON.stringify(element)} in ${show(left)}`);
      left.splice(i, 1);
    }
  }

  async #watch(kind: keyof typeof WATCH_NAMES, step: Fields): Promise<void> {
    checkNames(step, [kind, 'args', 'error']);
    const fields = (step['args'] ?? {}) as Fields;
    checkNames(fields, WATCH_NAMES[kind]);
    const args = { namespaces: ['main'], ...this.#args(fields) } as unknown as { namespaces: string[] };
    const { client } = this.fixture;
    const open = {
      watch: () => client.watch(args),
      watch_expiring: () => client.watchExpiring(args as never),
      watch_changes: () => client.watchChanges(args),
      member: () => client.consume(args as never),
    };
    const reader = new Reader(open[kind](), args.namespaces, kind);
    if (step['error']) return this.#fails(() => reader.open(), step['error']);
    this.#watches.set(step[kind] as string, reader);
    await reader.open();
  }

  async #events(step: Fields): Promise<void> {
    checkNames(step, ['events', 'expect', 'lost', 'save', 'error', 'delivered']);
    const reader =
      this.#watches.get(step['events'] as string) ?? assert.fail(`there is no watch ${step['events']}`);
    const expected = (step['expect'] ?? []) as Json[] | { unordered: Json[] };
    const count = Array.isArray(expected) ? expected.length : expected.unordered.length;
    const { delivered } = step;
    assert.ok(delivered === undefined || reader.kind === 'member', 'delivered is of a member');
    const read = async () =>
      reader.kind === 'member'
        ? reader.readCount(count, isObject(delivered) ? (this.#argument('', delivered) as number) : undefined)
        : reader.readUntil(await this.fixture.clock.now());
    if (step['error']) return this.#fails(read, step['error']);
    await read();
    const { events, lost } = reader.take();
    if (step['expect'] !== undefined) this.#match(expected as Json, events, 'events');
    assert.equal(lost, step['lost'] ?? 0, 'lost');
    const tokens = reader.resumeTokens;
    this.#save(step['save'], { events, resume_token: tokens[reader.namespaces[0]!], resume_tokens: tokens });
  }

  /** What a watch has told up to now. */
  async #readAll(name: string): Promise<ExpiredEvent[]> {
    const reader = this.#watches.get(name) ?? assert.fail(`there is no watch ${name}`);
    await reader.readUntil(await this.fixture.clock.now());
    return reader.take().events as ExpiredEvent[];
  }

  async #worker(step: Fields): Promise<void> {
    checkNames(step, ['worker', 'args', 'handler']);
    const { namespace = 'main', ...rest } = (step['args'] ?? {}) as Fields;
    checkNames(rest, ['group', 'start', 'keys_only', 'max_in_flight', 'concurrency', 'retry_delay']);
    const client = this.fixture.client.namespace(namespace as string);
    const args = this.#args(rest) as { group: string };
    const handlers = (step['handler'] ?? {}) as { [key: string]: Fields[] };
    const worker = new HandlingWorker(client, args, (event, calls) => {
      const scripted = handlers[event.key.toString()];
      const what = scripted?.[Math.min(calls, scripted.length - 1)] ?? { ack: {} };
      checkNames(what, ['ack', 'nack', 'put_back', 'terminate', 'throw']);
      if ('throw' in what) throw new Error(what['throw'] as string);
      return settleOf(this.#args(what));
    });
    this.#workers.set(step['worker'] as string, worker);
    await eventually(async () => {
      const group = await client.getGroup(args.group, { includeStatistics: true }).catch(() => undefined);
      return (group?.statistics?.members ?? 0) > 0;
    });
  }

  async #handled(step: Fields): Promise<void> {
    checkNames(step, ['handled', 'expect']);
    const worker =
      this.#workers.get(step['handled'] as string) ?? assert.fail(`there is no worker ${step['handled']}`);
    const expected = step['expect'] as Json[] | { unordered: Json[] };
    const count = Array.isArray(expected) ? expected.length : expected.unordered.length;
    await eventually(() => worker.handled.length >= count).catch(() => {});
    this.#match(expected as Json, worker.handled.splice(0), 'handled');
  }
}

function show(value: unknown): string {
  if (Buffer.isBuffer(value)) return `bytes ${value.subarray(0, 40).toString('hex')}`;
  return (
    JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? `${inner}` : inner)) ??
    'nothing'
  );
}

function errorFields(error: unknown): object {
  if (!(error instanceof TimecacheError)) throw error;
  const { code, reason, field: name, metadata, retryDelayMs } = error;
  return { code, reason, field: name, metadata, retryDelayMs };
}

/** Reads a watch or a member, and keeps what came until it is asked for. */
class Reader {
  readonly resumeTokens: Record<string, Buffer> = {};
  readonly #watermarks = new Map<string, number>();
  readonly #delivered = new Map<string, number>();
  readonly #told = new Set<string>();
  #batches: (CommonBatch & { events: (ExpiredEvent | ChangeEvent)[] })[] = [];

  constructor(
    readonly watcher: Watcher | Watcher<ChangeBatch>,
    readonly namespaces: readonly string[],
    readonly kind: string,
  ) {}

  async open(): Promise<void> {
    while (this.namespaces.some((namespace) => !this.#watermarks.has(namespace))) await this.#read();
  }

  async readUntil(time: number): Promise<void> {
    while (this.namespaces.some((namespace) => (this.#watermarks.get(namespace) ?? -1) < time))
      await this.#read();
  }

  /** `delivered`: reads, too, until what died then has come. */
  async readCount(count: number, delivered = -Infinity): Promise<void> {
    const timer = setTimeout(() => this.watcher.close(), 60_000);
    const isDelivered = (namespace: string) => (this.#delivered.get(namespace) ?? -Infinity) >= delivered;
    while (
      this.#batches.reduce((sum, { events }) => sum + events.length, 0) < count ||
      !this.namespaces.every(isDelivered)
    )
      await this.#read();
    clearTimeout(timer);
  }

  /** What came, the first namespace's first. */
  take(): { events: (ExpiredEvent | ChangeEvent)[]; lost: number } {
    const batches = this.#batches;
    this.#batches = [];
    const events = this.namespaces.flatMap((name) =>
      batches.filter(({ namespace }) => namespace === name).flatMap((batch) => batch.events),
    );
    const lost = batches.reduce((sum, batch) => sum + batch.lost, 0);
    if (this.kind !== 'watch_expiring') return { events, lost };
    const isNew = ({ namespace, key, version, deadline }: ExpiredEvent) => {
      const id = `${namespace} ${key.toString('hex')} ${version} ${deadline}`;
      return !this.#told.has(id) && this.#told.add(id);
    };
    return { events: (events as ExpiredEvent[]).filter(isNew), lost };
  }

  async #read(): Promise<void> {
    const { value, done } = await this.watcher.next();
    assert.ok(!done, 'the events did not come');
    this.#watermarks.set(value.namespace, value.watermark);
    this.resumeTokens[value.namespace] = value.resumeToken;
    if ('changes' in value) return void this.#batches.push({ ...value, events: value.changes });
    if (value.deliveredWatermark !== undefined)
      this.#delivered.set(value.namespace, value.deliveredWatermark);
    this.#batches.push(value);
  }
}

/** A worker, and the events whose handlers have returned. */
class HandlingWorker {
  readonly handled: ExpiredEvent[] = [];
  readonly worker: GroupWorker;

  constructor(
    client: TimecacheClient,
    args: { group: string },
    handle: (event: ExpiredEvent, calls: number) => Settle,
  ) {
    const calls = new Map<string, number>();
    this.worker = client.worker(args, (event) => {
      const key = event.key.toString();
      const before = calls.get(key) ?? 0;
      calls.set(key, before + 1);
      this.handled.push(event);
      return handle(event, before);
    });
    this.worker.finished.catch(() => {}); // What it misses by that fails its step.
  }
}

// The arguments are of the scenarios' making: what is wrong with them the call itself says.
type Arguments = Record<string, any>;

function settleOf(how: Arguments): Settle {
  if (how['nack']) return nack(how['nack'].delayMs, how['nack'].reason);
  if (how['terminate']) return terminate(how['terminate'].reason);
  if (how['putBack']) return putBack(how['putBack']);
  return ack();
}

function positionOf(position: Arguments): GroupPosition {
  checkNames(position, ['start', 'time', 'resumeToken']);
  return Object.keys(position).length === 0 ? 'NOW' : (position['start'] ?? position);
}

function operandOf({ add, xor }: Arguments) {
  return add === undefined ? { xor } : { add };
}

const COMMON_WATCH = ['namespaces', 'keys_only', 'heartbeat_interval', 'max_message_bytes'];
const WATCH_NAMES = {
  watch: [...COMMON_WATCH, 'start', 'resume_tokens', 'fail_on_loss', 'key_prefix'],
  watch_expiring: [...COMMON_WATCH, 'lead_time', 'key_prefix'],
  watch_changes: [...COMMON_WATCH, 'start', 'resume_tokens', 'fail_on_loss', 'key_prefix'],
  member: [...COMMON_WATCH, 'group', 'start', 'max_in_flight'],
};

interface Call {
  names: readonly string[];
  run(client: TimecacheClient, args: Arguments): Promise<object | void>;
}

const touchAnswer = (version: number | undefined) => ({
  touched: version !== undefined,
  version: version ?? 0,
});

/** The operations that also go in batches: with the operation, and what its result is as the proto's message. */
const OPERATIONS: Record<
  string,
  { names: string[]; make(args: Arguments): Operation<unknown>; answer?(result: never): object }
> = {
  put: {
    names: [
      ...['key', 'value', 'ttl', 'condition', 'if_version', 'return_previous', 'keep_deadline'],
      ...['expire_at', 'allow_past', 'idempotency_id', 'traceparent'],
    ],
    make: ({ key, value, ...options }) => op.put(key, value, options),
  },
  get: {
    names: ['key', 'touch'],
    make: ({ key, ...options }) => op.get(key, options),
    answer: (entry) => ({ entry }),
  },
  remove: {
    names: ['key', 'if_version', 'return_previous', 'idempotency_id'],
    make: ({ key, ...options }) => op.remove(key, options),
  },
  contains: {
    names: ['key', 'condition', 'if_version'],
    make: ({ key, ...options }) => op.contains(key, options),
    answer: (contains) => ({ contains }),
  },
  touch: {
    names: ['key', 'ttl', 'namespace_ttl', 'if_version', 'expire_at', 'allow_past'],
    make: ({ key, ...options }) => op.touch(key, options),
    answer: touchAnswer,
  },
  append: {
    names: [...['key', 'value', 'ttl', 'condition', 'if_version', 'touch', 'idempotency_id'], 'traceparent'],
    make: ({ key, value, ...options }) => op.append(key, value, options),
  },
  combine: {
    names: [
      ...['key', 'add', 'xor', 'initial', 'remove_if_zero', 'touch', 'ttl', 'if_version'],
      ...['idempotency_id', 'traceparent'],
    ],
    make: ({ key, add, xor, ...options }) => op.combine(key, operandOf({ add, xor }), options),
  },
  gather: {
    names: [
      ...['key', 'part', 'value', 'expected_parts', 'expected_names', 'touch', 'ttl'],
      ...['keep_first', 'remember', 'idempotency_id', 'traceparent'],
    ],
    make: ({ key, part, value, ...options }) => op.gather(key, part, value, options),
  },
};

/** One operation of a batch, given as `{put: {...}}`. */
function operationOf(request: Arguments): { kind: string; operation: Operation<unknown> } {
  const [[kind, args]] = Object.entries(request) as [[string, Arguments]];
  const { names, make } = OPERATIONS[kind] ?? assert.fail(`the runner does not know the operation ${kind}`);
  const known = names.flatMap((name) => [camel(name), `${camel(name)}Ms`]);
  known.push('ifAbsent', 'ifPresent', 'entryTraceparent');
  checkNames(args, known);
  return { kind, operation: make(args) };
}

function resultsOf(kinds: string[], results: readonly PromiseSettledResult<unknown>[]) {
  return {
    results: results.map((result, i) => {
      if (result.status === 'rejected') return { error: errorFields(result.reason) };
      const answer = OPERATIONS[kinds[i]!]!.answer ?? ((value: object) => value);
      return { [kinds[i]!]: answer(result.value as never), error: undefined };
    }),
  };
}

const CALLS: Record<string, Call> = {
  put: {
    names: OPERATIONS['put']!.names,
    run: (client, { key, value, ...options }) => client.put(key, value, options),
  },
  get: {
    names: OPERATIONS['get']!.names,
    run: async (client, { key, ...options }) => ({ entry: await client.get(key, options) }),
  },
  remove: {
    names: OPERATIONS['remove']!.names,
    run: (client, { key, ...options }) => client.remove(key, options),
  },
  contains: {
    names: OPERATIONS['contains']!.names,
    run: async (client, { key, ...options }) => ({ contains: await client.contains(key, options) }),
  },
  size: { names: [], run: (client) => client.size() },
  touch: {
    names: OPERATIONS['touch']!.names,
    run: async (client, { key, ...options }) => touchAnswer(await client.touch(key, options)),
  },
  append: {
    names: OPERATIONS['append']!.names,
    run: (client, { key, value, ...options }) => client.append(key, value, options),
  },
  combine: {
    names: OPERATIONS['combine']!.names,
    run: (client, { key, add, xor, ...options }) => client.combine(key, operandOf({ add, xor }), options),
  },
  gather: {
    names: OPERATIONS['gather']!.names,
    run: (client, { key, part, value, ...options }) => client.gather(key, part, value, options),
  },
  execute: {
    names: ['operations', 'atomic'],
    run: async (client, args) => {
      const operations = (args['operations'] as Arguments[]).map(operationOf);
      const { atomic } = args;
      const results = await client.execute(
        operations.map(({ operation }) => operation),
        { atomic },
      );
      return resultsOf(
        operations.map(({ kind }) => kind),
        results,
      );
    },
  },
  pipeline: {
    names: ['operations'],
    run: async (client, args) => {
      const operations = (args['operations'] as Arguments[]).map(operationOf);
      const pipeline = client.pipeline();
      const results = Promise.allSettled(operations.map(({ operation }) => pipeline.add(operation)));
      const closed = pipeline.close();
      await Promise.all([results, closed]);
      return resultsOf(
        operations.map(({ kind }) => kind),
        await results,
      );
    },
  },
  scan: {
    names: ['key_prefix', 'keys_only'],
    run: async (client, args) => {
      const entries = [];
      for await (const entry of client.scan(args)) entries.push(entry);
      return { entries };
    },
  },
  dead_letters: {
    names: ['key_prefix'],
    run: async (client, args) => {
      const letters = [];
      for await (const entry of client.scan(args)) {
        const { event, ...letter } = decodeDeadLetter(entry);
        letters.push({ ...event, deadLetter: letter });
      }
      return { letters };
    },
  },
  settle: {
    names: ['group', 'settlements'],
    run: async (client, { group, settlements }) => {
      const results = await client.settle(
        group,
        (settlements as Arguments[]).map(({ deliveryToken, ...how }) => {
          checkNames(how, ['ack', 'nack', 'putBack', 'terminate', 'extend']);
          return { deliveryToken, how: how['extend'] ? extend() : settleOf(how) };
        }),
      );
      return {
        results: results.map((result) =>
          result.status === 'fulfilled'
            ? { version: result.value, error: undefined }
            : { version: 0, error: errorFields(result.reason) },
        ),
      };
    },
  },
  create_group: {
    names: ['name', 'options', 'start'],
    run: (client, { name, options, start }) =>
      client.createGroup(name, options, { start: start && positionOf(start) }),
  },
  seek_group: {
    names: ['name', 'position', 'drop_unsettled'],
    run: (client, { name, position, ...options }) =>
      client.seekGroup(name, position ? positionOf(position) : 'NOW', options),
  },
  list_unsettled: {
    names: ['name', 'key_prefix', 'include_values'],
    run: async (client, { name, ...options }) => {
      const events = [];
      for await (const event of client.listUnsettled(name, options)) events.push(event);
      return { events };
    },
  },
  list_members: {
    names: ['name'],
    run: async (client, { name }) => ({ members: await client.listMembers(name) }),
  },
  fetch_expired: {
    names: ['group', 'start', 'max_events', 'wait', 'keys_only'],
    run: (client, { group, ...options }) => client.fetchExpired(group, options),
  },
  get_group: {
    names: ['name', 'include_statistics'],
    run: (client, { name, ...options }) => client.getGroup(name, options),
  },
  list_groups: {
    names: ['include_statistics'],
    run: async (client, options) => ({ groups: await client.listGroups(options) }),
  },
  update_group: {
    names: ['name', 'options', 'to_default'],
    run: (client, { name, options, toDefault }) =>
      client.updateGroup(name, options ?? {}, { toDefault: defaultNames(toDefault) }),
  },
  delete_group: { names: ['name'], run: (client, { name }) => client.deleteGroup(name) },
  create_namespace: {
    names: ['name', 'options'],
    run: (client, { name, options }) => client.createNamespace(name, options),
  },
  get_namespace: {
    names: ['name', 'include_statistics'],
    run: (client, { name, ...options }) => client.getNamespace(name, options),
  },
  list_namespaces: {
    names: ['include_statistics'],
    run: async (client, options) => ({ namespaces: await client.listNamespaces(options) }),
  },
  update_namespace: {
    names: ['name', 'options', 'to_default'],
    run: (client, { name, options, toDefault }) =>
      client.updateNamespace(name, options ?? {}, { toDefault: defaultNames(toDefault) }),
  },
  delete_namespace: { names: ['name'], run: (client, { name }) => client.deleteNamespace(name) },
  rotate_namespace: {
    names: ['name'],
    run: async (client, { name }) => ({ entries: await client.rotateNamespace(name) }),
  },
  get_deaths: {
    names: ['name', 'max_bars', 'within'],
    run: (client, { name, ...options }) => client.getDeaths(name, options),
  },
  get_hot_keys: {
    names: ['name', 'max_keys'],
    run: (client, { name, ...options }) => client.getHotKeys(name, options),
  },
  who_am_i: { names: [], run: (client) => client.whoAmI() },
  list_slow_calls: { names: [], run: (client) => client.listSlowCalls() },
  list_connections: {
    names: [],
    run: async (client) => ({ connections: await client.listConnections() }),
  },
  close_connection: { names: ['id'], run: (client, { id }) => client.closeConnection(id) },
  get_server: { names: [], run: (client) => client.getServer() },
  get_cluster: { names: [], run: (client) => client.getCluster() },
  hand_over: { names: ['to'], run: async (client, { to }) => ({ to: await client.handOver(to) }) },
};

function defaultNames(names: string[] | undefined): never[] {
  return (names ?? []).map((name) =>
    [...DURATIONS, ...DURATION_LISTS].includes(name) ? `${camel(name)}Ms` : camel(name),
  ) as never[];
}
