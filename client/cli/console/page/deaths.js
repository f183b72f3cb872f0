// What dies when: GetDeaths as numbers, and the storms in it.
import { num, seconds, time } from './format.js';

// A storm: so many entries within one bar, and so many times the mean bar.
const STORM_ENTRIES = 1_000;
const STORM_FACTOR = 5;
// Where more than this share of the entries dies after the time to live, because they
// have longer times of their own, the whole future is shown instead.
const LATER_SHARE = 0.5;

// {now, bars: [{begin, end, entries, bytes}], laterEntries, laterBytes, entries, bytes}:
// times in milliseconds since 1970, the last two of all.
function numbersOf(response) {
  const bars = (response.bars ?? []).map((bar) => ({
    begin: time(bar.begin), end: time(bar.end), entries: num(bar.entries), bytes: num(bar.bytes),
  }));
  const laterEntries = num(response.laterEntries);
  const laterBytes = num(response.laterBytes);
  return {
    now: time(response.serverTime), bars, laterEntries, laterBytes,
    entries: bars.reduce((sum, bar) => sum + bar.entries, laterEntries),
    bytes: bars.reduce((sum, bar) => sum + bar.bytes, laterBytes),
  };
}

// `within` in seconds; undefined: all.
export async function getDeaths(api, name, { maxBars, within, signal }) {
  const request = { name, maxBars };
  if (within !== undefined) request.within = `${within.toFixed(3)}s`;
  return numbersOf(await api.call('NamespaceService/GetDeaths', request, { signal }));
}

// One turn of the wheel, in seconds: a time to live and the bucket that is dying.
export function turnOf(namespace) {
  return seconds(namespace.options.ttl) + seconds(namespace.bucketWidth);
}

// The deaths for a wheel, and `span`, the seconds of one turn of it. `last` is what it
// returned before.
export async function getWheel(api, namespace, { maxBars, signal, last }) {
  const turn = turnOf(namespace);
  const wasLonger = last && last.entries > 0 && (last.span > turn
    || last.laterEntries > LATER_SHARE * last.entries);
  const deaths = await getDeaths(api, namespace.name, {
    maxBars, within: wasLonger ? undefined : turn, signal,
  });
  deaths.span = turn;
  if (deaths.bars.length > 0) {
    const end = (deaths.bars.at(-1).end - deaths.now) / 1000;
    if (end > turn * 1.5) deaths.span = roundUp(end);
  }
  return deaths;
}

const STEPS = [1, 2, 5, 10, 15, 20, 30, 45, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800,
  43200, 86400, 2 * 86400, 7 * 86400, 14 * 86400, 30 * 86400, 90 * 86400, 365 * 86400];

// So that the wheel does not change its scale every second.
function roundUp(value) {
  return STEPS.find((step) => step >= value) ?? Math.ceil(value / (365 * 86400)) * 365 * 86400;
}

// [{begin, end, entries, bytes, factor}], neighbours as one, the largest first. `factor`
// is how many times the mean bar it is.
export function stormsOf({ bars }) {
  if (bars.length < 2) return [];
  const mean = bars.reduce((sum, bar) => sum + bar.entries, 0) / bars.length;
  const least = Math.max(STORM_ENTRIES, STORM_FACTOR * mean);
  const storms = [];
  let open = null;
  for (const bar of bars) {
    if (bar.entries < least) {
      open = null;
    } else if (open) {
      open.end = bar.end;
      open.entries += bar.entries;
      open.bytes += bar.bytes;
      open.bars += 1;
    } else {
      open = { ...bar, bars: 1 };
      storms.push(open);
    }
  }
  for (const storm of storms) storm.factor = storm.entries / storm.bars / mean;
  return storms.sort((a, b) => b.entries - a.entries);
}

export function isIn(storms, bar) {
  return storms.some((storm) => bar.begin >= storm.begin && bar.end <= storm.end);
}
