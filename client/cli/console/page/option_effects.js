// The options of a namespace, and what a change of each does to what is there: what the
// API says of UpdateNamespace, with this namespace's numbers.
import { bytes, count, duration, enumText, num, parseDuration, plural, protoDuration, seconds } from './format.js';

const LIMIT_POLICIES = ['LIMIT_POLICY_REJECT', 'LIMIT_POLICY_EVICT_OLDEST'];
const RESTART_POLICIES = ['RESTART_POLICY_FIRE', 'RESTART_POLICY_PAUSE'];
const ON_DISK = ['DURABILITY_ASYNC', 'DURABILITY_SYNC'];

const width = (options) => seconds(options.ttl) / (Math.max(2, num(options.numBuckets)) - 1);
const isMemory = (options) => options.durability === 'DURABILITY_MEMORY';

// {name, label, group, kind: duration | count | bytes | bool | text | enum, values, hint,
// zero: what 0 means, effect(before, after, {statistics, rates}) -> texts}. A text with
// "!" at its beginning is a warning.
export const OPTIONS = [
  {
    name: 'ttl', label: 'Time to live', group: 'Life', kind: 'duration', hint: '1 ms to 10 years',
    effect: (before, after, { statistics, rates }) => {
      const [old, now] = [seconds(before.ttl), seconds(after.ttl)];
      const texts = [`${plural(statistics.entries, 'entry that is', 'entries that are')} there ${
        num(statistics.entries) === 1 ? 'keeps its' : 'keep their'} deadline: nothing dies sooner or later by this.`,
      `Puts, touches and renewals from now on give ${duration(now)} in place of ${duration(old)}, but to entries with a time to live of their own.`];
      if (now < old) {
        texts.push(`For up to ${duration(old)} there are lives of both lengths: what is put now dies before what is there, and memory comes free only as that dies.`);
      }
      if (rates?.writes > 0) {
        texts.push(`At ${count(rates.writes)} writes a second, up to about ${count(rates.writes * now)} entries will live at a time (with ${duration(old)}: ${count(rates.writes * old)}).`);
      }
      if (now > seconds(after.maxTtl)) texts.push('!It is longer than max_ttl: raise that, too.');
      return texts;
    },
  },
  {
    name: 'numBuckets', label: 'Buckets', group: 'Life', kind: 'count', hint: '2 to 100,000, with a width of at least 100 us',
    effect: (before, after) => [
      'Entries that are there stay in their buckets, which die when they would have died.',
      num(after.numBuckets) > num(before.numBuckets)
        ? 'More buckets: deaths are closer to their deadlines, in smaller portions; each live bucket takes some memory in each shard.'
        : '!Fewer buckets: entries outlive their ttl by more, and more of them die at a time.'],
  },
  { name: 'maxTtl', label: 'Longest own time to live', group: 'Life', kind: 'duration', hint: 'ttl to 10 years',
    effect: (before, after) => (seconds(after.maxTtl) < seconds(before.maxTtl)
      ? ['Entries that have longer ones keep them until they die.', `!Puts and touches that ask for more than ${duration(seconds(after.maxTtl))} fail from now on.`]
      : ['Puts and touches may ask for longer times of their own from now on.']) },
  { name: 'maxLife', label: 'Longest life', group: 'Life', kind: 'duration', hint: 'Since it was created, whatever renews it', zero: 'no bound',
    effect: (before, after) => (seconds(after.maxLife) === 0 ? ['Entries may be renewed for ever.']
      : ['Entries that are there keep the deadline that they have.',
        `!An entry that is older than ${duration(seconds(after.maxLife))} gets no later deadline when it is renewed: it may die at the next moment.`]) },
  { name: 'sliding', label: 'Reads renew (sliding)', group: 'Life', kind: 'bool',
    effect: (_, after) => [after.sliding ? 'A Get that does not say "touch: false" renews the time to live from now on: entries that are read live on.'
      : '!A Get does not renew any more: entries that live by being read die a ttl after their last renewal.'] },
  { name: 'maxEntries', label: 'Most entries', group: 'Limits', kind: 'count', zero: 'no limit',
    effect: (_, after, { statistics }) => overLimit(num(after.maxEntries), num(statistics.entries), after, (value) => plural(value, 'entry', 'entries')) },
  { name: 'maxBytes', label: 'Most bytes', group: 'Limits', kind: 'bytes', zero: 'no limit',
    effect: (_, after, { statistics }) => overLimit(num(after.maxBytes), num(statistics.bytes), after, bytes) },
  { name: 'limitPolicy', label: 'At these limits', group: 'Limits', kind: 'enum', values: LIMIT_POLICIES, prefix: 'LIMIT_POLICY',
    effect: (_, after) => [after.limitPolicy === 'LIMIT_POLICY_EVICT_OLDEST'
      ? '!A put that does not fit kills the bucket that would die next, whole. Its entries are delivered with the cause "evicted".'
      : 'A put that does not fit fails with RESOURCE_EXHAUSTED. Nothing is evicted.'] },
  { name: 'maxValueBytes', label: 'Largest value', group: 'Limits', kind: 'bytes', hint: '1 B to 16 MiB',
    effect: () => ['Values that are there stay, whatever their size. Later puts, appends and gathers are held to it.'] },
  { name: 'maxOperationsPerSecond', label: 'Operations a second', group: 'Limits', kind: 'count', zero: 'no limit',
    effect: (_, after, { rates }) => {
      const most = num(after.maxOperationsPerSecond);
      const now = (rates?.writes ?? 0) + (rates?.reads ?? 0);
      return most > 0 && now > most ? [`!There are ${count(now)} a second now: those beyond ${count(most)} fail with MAX_OPERATION_RATE.`]
        : [most > 0 ? 'Operations beyond it fail with MAX_OPERATION_RATE and a time to retry.' : 'No operation is refused for its rate.'];
    } },
  { name: 'eventRetention', label: 'Events are kept for', group: 'Events', kind: 'duration', hint: '0 to 7 days',
    effect: (before, after) => (seconds(after.eventRetention) < seconds(before.eventRetention)
      ? [`!Events older than ${duration(seconds(after.eventRetention))} are dropped: watchers that resume before them get their number as lost. Events that a group has not settled stay the group's.`]
      : ['Events that have been dropped do not come back.']) },
  { name: 'eventRetentionBytes', label: 'Memory for kept events', group: 'Events', kind: 'bytes', hint: '1 MiB to 64 GiB',
    effect: (_, after, { statistics }) => (num(after.eventRetentionBytes) < num(statistics.eventsRetainedBytes)
      ? [`!${bytes(statistics.eventsRetainedBytes)} are kept now: the oldest are dropped.`] : []) },
  { name: 'deadLetterNamespace', label: 'Dead letters go to', group: 'Events', kind: 'text', hint: 'A namespace; empty: none',
    effect: (_, after) => [after.deadLetterNamespace
      ? `Events that groups fail to handle max_attempts times become entries of ${after.deadLetterNamespace}. It needs a long time to live, 30 days or so.`
      : '!Without it events are delivered until they are settled. Letters that exist stay where they are.'] },
  { name: 'maxBacklogBytes', label: 'Memory for unsettled events', group: 'Events', kind: 'bytes', zero: 'by max_bytes, or 256 MiB',
    effect: (_, after, { statistics }) => (num(after.maxBacklogBytes) > 0 && num(after.maxBacklogBytes) < num(statistics.backlogBytes)
      ? [`!Groups have ${bytes(statistics.backlogBytes)} unsettled now: the one that keeps most loses its oldest events.`] : []) },
  { name: 'unusedGroupTtl', label: 'Unused groups are kept for', group: 'Events', kind: 'duration', zero: 'for ever',
    effect: () => ['It counts for groups that are created by use from now on. Those that exist keep theirs.'] },
  { name: 'changeRetention', label: 'Changes are kept for', group: 'Events', kind: 'duration', zero: 'not kept',
    effect: (_, after) => [seconds(after.changeRetention) > 0 ? 'WatchChanges has puts, renewals and removals from now on.'
      : '!Streams of WatchChanges end, and what was kept is gone.'] },
  { name: 'changeRetentionBytes', label: 'Memory for kept changes', group: 'Events', kind: 'bytes', hint: '1 MiB to 64 GiB', effect: () => [] },
  { name: 'durability', label: 'Durability', group: 'Safety', kind: 'enum', values: ON_DISK, prefix: 'DURABILITY',
    fixed: (options) => !ON_DISK.includes(options.durability),
    effect: (_, after) => [after.durability === 'DURABILITY_SYNC' ? 'Later writes wait until they are on disk: slower, and safe from a loss of power.'
      : '!Later writes are answered before they are on disk: a loss of power loses the last 100 ms or so.'] },
  { name: 'restartPolicy', label: 'After a restart', group: 'Safety', kind: 'enum', values: RESTART_POLICIES, prefix: 'RESTART_POLICY',
    fixed: isMemory,
    effect: (_, after) => [after.restartPolicy === 'RESTART_POLICY_PAUSE'
      ? 'Time for which the server is down will not count: entries keep what remains of their lives.'
      : 'What is due while the server is down will die at its start.'] },
  { name: 'idempotencyWindow', label: 'Answers to ids are remembered for', group: 'Safety', kind: 'duration', zero: 'ids are refused',
    effect: (_, after) => [seconds(after.idempotencyWindow) === 0 ? '!Requests with an idempotency_id fail from now on.'
      : 'A repetition after this time is applied again.'] },
  { name: 'idempotencyMaxIds', label: 'Most answers', group: 'Safety', kind: 'count', hint: '1,000 to 1,000,000', effect: () => ['Beyond it the oldest are forgotten.'] },
];

function overLimit(most, now, options, format) {
  if (most === 0) return ['No put fails, or evicts, because of it.'];
  if (now <= most) return [`${format(now)} of it are used now.`];
  return [options.limitPolicy === 'LIMIT_POLICY_EVICT_OLDEST'
    ? `!There are ${format(now)} now: the next put kills the oldest buckets until it fits.`
    : `!There are ${format(now)} now: nothing is removed, and puts of new keys fail until enough has died.`];
}

// What a person reads.
export function optionText(option, options) {
  const value = options[option.name];
  if (option.kind === 'duration') return seconds(value) === 0 && option.zero ? option.zero : duration(seconds(value));
  if (option.kind === 'bool') return value ? 'yes' : 'no';
  if (option.kind === 'enum') return enumText(value, option.prefix);
  if (option.kind === 'text') return value || 'none';
  if (num(value) === 0 && option.zero) return option.zero;
  return option.kind === 'bytes' ? bytes(value) : count(value);
}

const SIZE = /^(\d+(?:\.\d+)?)\s*(|B|KiB|MiB|GiB|TiB)$/i;
const SIZES = { '': 1, b: 1, kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3, tib: 1024 ** 4 };

// What is written in a field -> the value of the wire. Throws Error.
export function parseOption(option, text) {
  const clean = text.trim();
  if (option.kind === 'duration') {
    const value = parseDuration(clean);
    if (!(value >= 0)) throw new Error(`${option.label}: "${clean}" is no duration: write it as 30s, 15m, 12h or 7d.`);
    return protoDuration(value);
  }
  if (option.kind === 'count') {
    const value = Number(clean.replaceAll(',', ''));
    if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${option.label}: "${clean}" is no whole number.`);
    return String(value);
  }
  if (option.kind === 'bytes') {
    const found = clean.match(SIZE);
    if (!found) throw new Error(`${option.label}: "${clean}" is no size: write it as 512KiB, 64MiB or 2GiB.`);
    return String(Math.round(Number(found[1]) * SIZES[found[2].toLowerCase()]));
  }
  return clean;
}

// What the changes of options do: [{label, from, to, texts}]. `namespace` is as it is now.
export function effectsOf(namespace, rates, changed) {
  const after = { ...namespace.options, ...changed };
  const facts = { statistics: namespace.statistics, rates };
  const effects = OPTIONS.filter((option) => option.name in changed).map((option) => ({
    label: option.label, from: optionText(option, namespace.options), to: optionText(option, after),
    texts: option.effect(namespace.options, after, facts),
  }));
  if ('ttl' in changed || 'numBuckets' in changed) {
    const [before, now] = [width(namespace.options), width(after)];
    effects.push({ label: 'Bucket width', from: duration(before), to: duration(now), texts: [
      `What is put from now on dies at most ${duration(now)} after its deadline.`,
      ...(now < 1e-4 ? ['!A width below 100 us is refused.'] : [])] });
  }
  return effects;
}
