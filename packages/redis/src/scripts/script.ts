/** A Lua script and its hash, by which the server knows it. */
import { createHash } from 'node:crypto';

/** A script as it is sent. */
export interface Script {
  readonly text: string;
  readonly sha: string;
}

/** What does one thing: for many operations in one piece, or for a lone one with its record as a key. */
export interface ScriptPair {
  readonly many: Script;
  readonly lone: Script;
}

/** Joins a prelude and a body. Both are constants: no value ever becomes part of a script. */
export function script(...parts: readonly string[]): Script {
  const text = parts.join('\n').replace(/^[ \t]+/gm, '');
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}
