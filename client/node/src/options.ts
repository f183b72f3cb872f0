// Options that are not known are refused: one that is misspelled would be left out without a word. Internal.

/** The names of a type's options: an interface that gets another one has it here, too, or it does not compile. */
export type Names<Options> = { readonly [K in keyof Required<Options>]: true };

/** What one call takes. */
export interface KnownOptions {
  readonly what: string;
  readonly names: ReadonlySet<string>;
}

export function known(what: string, ...names: readonly object[]): KnownOptions {
  return { what, names: new Set(names.flatMap((some) => Object.keys(some))) };
}

/** TypeError: an option that the call does not take, with the one that may be meant; or no options at all. */
export function checkOptions(options: unknown, { what, names }: KnownOptions): void {
  if (options === undefined) return;
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(
      `${what}: options must be an object, not ${options === null ? 'null' : typeof options}`,
    );
  }
  for (const name of Object.keys(options)) {
    if (!names.has(name)) throw new TypeError(`${what} has no option ${name}: ${suggest(name, [...names])}`);
  }
}

function suggest(name: string, names: readonly string[]): string {
  const [best] = names
    .map((other) => ({ other, distance: distanceOf(name, other) }))
    .filter(({ other, distance }) => distance <= Math.max(2, Math.min(name.length, other.length) / 3))
    .sort((a, b) => a.distance - b.distance);
  return best ? `did you mean ${best.other}?` : `it takes ${names.join(', ') || 'none'}`;
}

/** Characters to change, but for case, the unit at the end, and underscores. */
function distanceOf(one: string, other: string): number {
  const [a, b] = [one, other].map((name) => name.toLowerCase().replaceAll('_', '')) as [string, string];
  return Math.min(editDistance(a, b), editDistance(`${a}ms`, b), editDistance(`${a}s`, b));
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; ++i) {
    const next = [i];
    for (let j = 1; j <= b.length; ++j) {
      const change = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
