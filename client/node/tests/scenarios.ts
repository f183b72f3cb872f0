// The values of the scenarios in tests/conformance.

import assert from 'node:assert/strict';

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Fields = { [name: string]: Json };

export function isObject(json: Json | undefined): json is Fields {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

/** What does not know each key of `fields` would pass over what it does not understand. */
export function checkNames(fields: object, known: readonly string[]): void {
  for (const name of Object.keys(fields))
    assert.ok(known.includes(name), `the runner does not know "${name}"`);
}

export function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

export function milliseconds(text: Json): number {
  const [, seconds] =
    /^(-?[\d.]+)s$/.exec(text as string) ?? assert.fail(`${JSON.stringify(text)} is no duration`);
  return Number(seconds) * 1000;
}

export function bytes(json: Json): Buffer {
  if (typeof json === 'string') return Buffer.from(json);
  const { hex, repeat, times } = json as { hex?: string; repeat?: string; times?: number };
  return hex === undefined ? Buffer.from(repeat!.repeat(times!)) : Buffer.from(hex, 'hex');
}
