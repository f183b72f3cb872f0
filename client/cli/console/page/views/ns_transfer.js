// Load and download as lines of JSON, as `timecachectl load` and `dump` take and write
// them. Both stream: the tab holds a batch, or, where the browser cannot write files, what
// was read so far, up to MAX_MEMORY.
import { ApiError, isAbort } from '../api.js';
import { button, confirm, field, h, setText, toast } from '../dom.js';
import { bytes, count, num, plural, protoTime } from '../format.js';
import { DUMP_VERSION, fromLine, toLine } from '../ndjson.js';
import { scanPages } from '../scan.js';

const MAX_MEMORY = 256 << 20;
const BATCH_OPERATIONS = 1_000;
const BATCH_BYTES = 1 << 20;
// The longest line: the largest value in base64, and some.
const MAX_LINE = 24 << 20;
const ERRORS_SHOWN = 10;

export function mountTransfer(context) {
  const { can } = context;
  const status = h('p', { class: 'muted number', role: 'status' });
  const errors = h('ul', { class: 'error' });
  let running = null;
  const stop = button('Stop', () => running?.abort(), { hidden: true });
  const down = button('Download', () => run(download), { title: 'All entries with their values' });
  const file = h('input', { type: 'file', accept: '.ndjson,.jsonl,.json,application/x-ndjson', hidden: true,
    'aria-label': 'File to load', on: { change: () => {
      const [chosen] = file.files;
      file.value = '';
      if (chosen) ask(chosen);
    } } });
  const up = button('Load a file', () => file.click());
  const element = h('section', { class: 'card', 'aria-label': 'Load and download' },
    h('div', { class: 'card-head' }, h('h2', null, 'Load and download'),
      h('div', { class: 'row' }, stop, can('READ') && down, can('WRITE') && up, file)),
    h('p', { class: 'hint' }, 'Lines of JSON with key, value and deadline, as ', h('code', null, 'timecachectl dump'),
      ' writes them and ', h('code', null, 'load'), ' takes them: {"key": "k", "value": "v", "ttl": "30s"}. ',
      'A download has all values in plain text.'), status, errors);

  async function run(task) {
    if (running) return;
    running = new AbortController();
    stop.hidden = false;
    down.disabled = true;
    up.disabled = true;
    errors.replaceChildren();
    try {
      await task(AbortSignal.any([context.signal, running.signal]));
    } catch (error) {
      if (isAbort(error)) {
        setText(status, `Stopped. ${status.textContent}`);
      } else {
        setText(status, `Failed. ${status.textContent}`);
        toast(error.message, 'bad');
        if (!(error instanceof ApiError)) errors.append(h('li', null, error.message));
      }
    } finally {
      running = null;
      stop.hidden = true;
      down.disabled = false;
      up.disabled = false;
    }
  }

  async function download(signal) {
    const { name, api, clock, namespace } = context;
    const sink = await openSink(`${name}.ndjson`);
    if (!sink) return;
    let entries = 0;
    let written = Promise.resolve();
    const total = num(namespace.statistics.entries);
    const line = (object) => `${JSON.stringify(object)}\n`;
    await sink.write(line({ dump: { version: DUMP_VERSION, namespace: name, time: protoTime(clock.now()) } }));
    let failure = null;
    // A value of 16 MiB is more than a message of 4 MiB may have.
    await scanPages(api, { namespace: name, maxMessageBytes: 64 << 20 }, { signal, take: (page) => {
      const lines = (page.entries ?? []).map((entry) => line(toLine(entry))).join('');
      written = written.then(() => sink.write(lines)).catch((error) => { failure ??= error; });
      entries += page.entries?.length ?? 0;
      setText(status, `${count(entries)} of ${count(Math.max(total, entries))} entries, ${bytes(sink.size + lines.length)} …`);
      return failure === null;
    } });
    await written;
    if (failure) throw failure;
    await sink.write(line({ dump_end: { entries } }));
    await sink.close();
    setText(status, `${plural(entries, 'entry', 'entries')}, ${bytes(sink.size)}.`);
  }

  async function ask(chosen) {
    const deadlines = h('select', null, h('option', { value: 'keep' }, 'Keep them; what is over is left out'),
      h('option', { value: 'fresh' }, 'Give a fresh time to live'));
    const sure = await confirm({
      title: `Load ${chosen.name}?`, action: 'Load it',
      body: [h('p', null, `${bytes(chosen.size)} go into ${context.name}. Keys that are there get the file's values.`),
        field('Deadlines in the file', deadlines)],
    });
    if (sure) run((signal) => load(chosen, deadlines.value, signal));
  }

  async function load(chosen, deadlines, signal) {
    const { name, api } = context;
    const tally = { put: 0, over: 0, failed: 0, line: 0, read: 0 };
    const fail = (line, message) => {
      tally.failed += 1;
      if (tally.failed <= ERRORS_SHOWN) errors.append(h('li', null, `Line ${line}: ${message}`));
    };
    let batch = [];
    let size = 0;
    const flush = async () => {
      if (batch.length === 0) return;
      const { results = [] } = await api.call('TimeCacheService/Execute',
        { namespace: name, operations: batch.map((each) => each.operation) }, { signal });
      for (const [i, result] of results.entries()) {
        const { operation, line } = batch[i];
        if (!result.error) tally.put += operation.touch ? 0 : 1;
        else if (operation.put?.expireAt && Date.parse(operation.put.expireAt) <= context.clock.now()) tally.over += 1;
        else fail(line, result.error.message);
      }
      batch = [];
      size = 0;
      setText(status, `${count(tally.put)} put, ${Math.floor((tally.read / chosen.size) * 100)} % of the file …`);
    };
    for await (const text of linesOf(chosen, tally)) {
      tally.line += 1;
      if (text.trim() === '') continue;
      let parsed;
      try {
        parsed = fromLine(text, deadlines);
      } catch (error) {
        fail(tally.line, error.message);
        continue;
      }
      for (const operation of parsed.operations ?? []) batch.push({ operation, line: tally.line });
      size += text.length;
      if (batch.length >= BATCH_OPERATIONS || size >= BATCH_BYTES) await flush();
      signal.throwIfAborted();
    }
    await flush();
    setText(status, `${plural(tally.put, 'entry', 'entries')} put${tally.over > 0 ? `, ${plural(tally.over, 'entry was', 'entries were')} over` : ''}${
      tally.failed > 0 ? `, ${plural(tally.failed, 'error')}` : ''}.`);
  }
  return { element };
}

async function* linesOf(file, tally) {
  const reader = file.stream().pipeThrough(new TextDecoderStream('utf-8', { fatal: true })).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    tally.read += value.length;
    const parts = (rest + value).split('\n');
    rest = parts.pop();
    if (rest.length > MAX_LINE) throw new Error('A line is longer than an entry can be.');
    yield* parts;
  }
  if (rest) yield rest;
}

// Where a download goes: to a file as it comes, where the browser can, else into memory.
async function openSink(name) {
  if (window.showSaveFilePicker) {
    let handle;
    try {
      handle = await window.showSaveFilePicker({ suggestedName: name });
    } catch (error) {
      if (isAbort(error)) return null;
      throw error;
    }
    const file = await handle.createWritable();
    return {
      size: 0,
      async write(text) {
        this.size += text.length;
        await file.write(text);
      },
      close: () => file.close(),
    };
  }
  const parts = [];
  return {
    size: 0,
    async write(text) {
      this.size += text.length;
      if (this.size > MAX_MEMORY) throw new Error(`More than ${bytes(MAX_MEMORY)}: use timecachectl dump.`);
      parts.push(new Blob([text]));
    },
    async close() {
      const url = URL.createObjectURL(new Blob(parts, { type: 'application/x-ndjson' }));
      const link = h('a', { href: url, download: name });
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    },
  };
}
