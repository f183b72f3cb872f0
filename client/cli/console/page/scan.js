// Scans that end early: a page of keys, a sample, a search. Never a whole namespace in the
// tab's memory.
import { isAbort } from './api.js';
import { fromBase64, num, textOf } from './format.js';

// Streams pages of a scan to `take(page)` until it returns false. Returns whether the scan
// came to its end; false also if `take` refused its last page.
export async function scanPages(api, request, { signal, take }) {
  const enough = new AbortController();
  try {
    await api.stream('TimeCacheService/Scan', request, {
      signal: AbortSignal.any([signal, enough.signal]),
      onMessage: (page) => {
        if (!enough.signal.aborted && take(page) === false) enough.abort();
      },
    });
    // Pages may have come, and been left out, before the stream could be ended.
    return !enough.signal.aborted;
  } catch (error) {
    if (isAbort(error) && enough.signal.aborted && !signal.aborted) return false;
    throw error;
  }
}

// What a list needs of an entry: not its value.
export function summaryOf(entry) {
  const partBytes = (entry.parts?.parts ?? []).reduce((sum, part) => sum + base64Bytes(part.value), 0);
  return {
    key: entry.key, version: entry.version, putTime: entry.putTime, deadline: entry.deadline,
    createTime: entry.createTime, ownTtl: entry.ownTtl, isGather: Boolean(entry.parts),
    bytes: num(entry.omittedValueBytes) || partBytes || base64Bytes(entry.value),
  };
}

export function base64Bytes(base64) {
  const text = base64 ?? '';
  return (text.length / 4) * 3 - (text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0);
}

const SEPARATORS = /[:/.|#]/g;
const MAX_DEPTH = 5;
const MAX_NODES = 4_000;

// The prefixes of a sample of keys, with how many keys and bytes are below each.
export class PrefixTree {
  constructor() {
    this.root = { prefix: '', label: '', entries: 0, bytes: 0, children: new Map() };
    this.nodes = 1;
    this.binary = 0;
  }

  // `after` is what all keys begin with: the tree begins below it.
  add(entry, after = '') {
    const key = textOf(fromBase64(entry.key));
    const size = base64Bytes(entry.key) + (num(entry.omittedValueBytes) || base64Bytes(entry.value));
    this.root.entries += 1;
    this.root.bytes += size;
    if (key === null) {
      this.binary += 1;
      return;
    }
    let node = this.root;
    let start = after.length;
    SEPARATORS.lastIndex = start;
    for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
      const found = SEPARATORS.exec(key);
      if (!found) return;
      const end = found.index + 1;
      const prefix = key.slice(0, end);
      let child = node.children.get(prefix);
      if (!child) {
        if (this.nodes >= MAX_NODES) return;
        this.nodes += 1;
        child = { prefix, label: key.slice(start, end), entries: 0, bytes: 0, children: new Map() };
        node.children.set(prefix, child);
      }
      child.entries += 1;
      child.bytes += size;
      node = child;
      start = end;
    }
  }
}
