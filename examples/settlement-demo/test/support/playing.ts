/** Plays of the demo, in processes and a folder of their own. */
import type { ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { built, start } from '../../../../test/support/example.js';

/** Builds the demo before the tests, and leaves nothing behind after them. */
export function playing() {
  let folder: string;
  const started: ChildProcess[] = [];

  built();
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'guard-demo-test-'));
    // Where this is root, Postgres is not: its data lies in here too.
    chmodSync(folder, 0o755);
  });
  afterAll(() => {
    for (const child of started) child.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  return {
    /** Where a play has its files. */
    folder: (): string => folder,
    play(args: readonly string[]): ChildProcess {
      const child = start('settlement-demo', args, { ...process.env, TMPDIR: folder });
      started.push(child);
      return child;
    },
  };
}

/** The figures in the last line of what a play with `--json` said. */
export function figuresIn(output: string): Record<string, number> {
  return JSON.parse(output.trimEnd().split('\n').at(-1) ?? '') as Record<string, number>;
}
