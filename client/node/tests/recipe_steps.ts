// The steps `recipe` and `do` of the scenarios in tests/conformance/recipes.

import assert from 'node:assert/strict';
import type { ExpiredEvent, TimecacheClient } from 'timecached';
import {
  Acker,
  EventLog,
  Join,
  Lock,
  SharedArray,
  Table,
  answerOnce,
  mayCall,
  type LogPage,
  type LogPosition,
} from 'timecached/recipes';
import { bytes, checkNames, milliseconds, type Fields, type Json } from './scenarios.js';

type Answer = Promise<object> | object;

/** The arguments of a step, each as it is asked for. */
class Args {
  readonly #asked: string[] = [];

  constructor(private readonly fields: Fields) {}

  get(name: string): Json | undefined {
    this.#asked.push(name);
    return this.fields[name];
  }
  bytes(name: string): Buffer {
    return bytes(this.get(name)!);
  }
  ms(name: string): number | undefined {
    const json = this.get(name);
    return json === undefined ? undefined : milliseconds(json);
  }
  id(name: string): bigint {
    return BigInt(this.get(name) as number | string);
  }
  ids(name: string): bigint[] {
    return ((this.get(name) ?? []) as (number | string)[]).map(BigInt);
  }
  time(name: string): number {
    return Number(this.get(name)) / 1000;
  }
  /** That each was asked for. */
  check(): void {
    checkNames(this.fields, this.#asked);
  }
}

/** The objects that a scenario has made. */
export class RecipeSteps {
  readonly #made = new Map<string, (method: string, args: Args) => Answer>();

  constructor(
    private readonly client: TimecacheClient,
    /** What a watch has told up to now. */
    private readonly eventsOf: (watch: string) => Promise<ExpiredEvent[]>,
  ) {}

  make(kind: string, name: string, fields: Fields): void {
    const args = new Args(fields);
    this.#made.set(name, this.#make(kind, args));
    args.check();
  }

  async do(what: string, fields: Fields): Promise<object> {
    const args = new Args(fields);
    const [name, method] = what.split('.') as [string, string | undefined];
    const call = method ? this.#made.get(name) : undefined;
    const answer = call ? call(method!, args) : this.#call(name, args);
    args.check();
    return answer;
  }

  async #call(name: string, args: Args): Promise<object> {
    const { client } = this;
    if (name === 'join_id') return { id: Join.id(...(args.get('fields') as Json[]).map(bytes)) };
    if (name === 'may_call') {
      const limit = args.get('limit') as number;
      return { allowed: await mayCall(client, args.bytes('caller'), limit, args.ms('window')!) };
    }
    assert.equal(name, 'answer_once', `the runner does not know ${name}`);
    const times = { workTimeMs: args.ms('work_time')!, rememberedMs: args.ms('remembered')! };
    let worked = false;
    const result = args.bytes('answer');
    const answer = await answerOnce(client, args.bytes('request'), times, () => {
      worked = true;
      return result;
    });
    return { answer, worked };
  }

  #make(kind: string, args: Args): (method: string, args: Args) => Answer {
    const make = { lock, table, array, join, acker, event_log: eventLog }[kind];
    if (!make) assert.fail(`the runner does not know the recipe ${kind}`);
    return make(this.client, args, async (events, read) => {
      const all = await this.eventsOf(events.get('events') as string);
      return all.map(read).filter((one) => one !== undefined);
    });
  }
}

/** What a recipe makes of the events of a watch. */
type OfEvents = <T>(args: Args, read: (event: ExpiredEvent) => T | undefined) => Promise<T[]>;

function methodOf(methods: Record<string, (args: Args) => Answer>): (method: string, args: Args) => Answer {
  return (method, args) => (methods[method] ?? assert.fail(`the runner does not know ${method}`))(args);
}

function lock(client: TimecacheClient, args: Args) {
  const owner = args.get('owner') as string | undefined;
  const made = new Lock(client, args.bytes('key'), { ttlMs: args.ms('ttl'), owner });
  return methodOf({
    try_acquire: async () => ({ token: await made.tryAcquire() }),
    renew: async () => ({ held: await made.renew() }),
    release: async () => ({ held: await made.release() }),
  });
}

function table(client: TimecacheClient, args: Args, ofEvents: OfEvents) {
  const made = new Table(client, args.get('name') as string, { ttlMs: args.ms('ttl') });
  return methodOf({
    add: async (args) => ({ new: await made.add(args.bytes('member')) }),
    remove: async (args) => ({ removed: await made.remove(args.bytes('member')) }),
    contains: async (args) => ({ contains: await made.contains(args.bytes('member')) }),
    list: async () => ({ members: await made.list() }),
    left: async (args) => ({ members: await ofEvents(args, ({ key }) => made.memberOf(key)) }),
  });
}

function array(client: TimecacheClient, args: Args) {
  const renew = args.get('renew') as boolean | undefined;
  const made = new SharedArray(client, args.bytes('key'), { ttlMs: args.ms('ttl'), renew: renew ?? true });
  return methodOf({
    add: async (args) => ({ id: await made.add(args.bytes('value'), args.id('id')) }),
    remove: async (args) => ({ removed: await made.remove(args.id('id')) }),
    compact: async () => ({ compacted: await made.compact() }),
    read: () => made.read(),
  });
}

function join(client: TimecacheClient, args: Args, ofEvents: OfEvents) {
  const sources = args.get('sources') as string[];
  const made = new Join(client, args.get('name') as string, { sources, ttlMs: args.ms('ttl') });
  return methodOf({
    add: async (args) => ({
      row: await made.add(args.bytes('id'), args.bytes('source'), args.bytes('tuple')),
    }),
    incomplete: async (args) => ({ rows: await ofEvents(args, (event) => made.incomplete(event)) }),
  });
}

function acker(client: TimecacheClient, args: Args, ofEvents: OfEvents) {
  const made = new Acker(client, args.get('name') as string, { ttlMs: args.ms('ttl') });
  return methodOf({
    track: async (args) => ({ done: await made.track(args.bytes('root'), args.ids('emitted')) }),
    ack: async (args) => ({
      done: await made.ack(args.bytes('root'), args.id('tuple'), args.ids('emitted')),
    }),
    fail: async (args) => ({ existed: await made.fail(args.bytes('root')) }),
    failed: async (args) => ({ roots: await ofEvents(args, (event) => made.failedRoot(event)) }),
  });
}

function eventLog(client: TimecacheClient, args: Args) {
  const chunks = args.get('chunks') as number;
  const made = new EventLog(client, args.get('name') as string, { chunkMs: args.ms('chunk'), chunks });
  let position: LogPosition = made.positionAt(0);
  const answer = ({ events, mayHaveMissed }: LogPage) => ({
    events: events.map(({ id, time, data }) => ({ id, time_us: Math.round(time * 1000), data })),
    may_have_missed: mayHaveMissed,
    position,
  });
  return methodOf({
    append: async (args) => ({
      appended: await made.append(args.time('time_us'), args.bytes('data'), args.id('id')),
    }),
    read: async (args) => answer(await made.read(args.time('from_us'), args.time('to_us'))),
    position_at: (args) => (position = made.positionAt(args.time('time_us'))),
    read_new: async (args) => {
      const page = await made.readNew(position, args.time('now_us'));
      position = page.position;
      return answer(page);
    },
  });
}
