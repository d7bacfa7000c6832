/** Entries that are large, or many in one request. */
import { MAX_FULL_KEY_BYTES, MAX_VALUE_BYTES, type StateWrite, type WriteAnswer } from '@guard/core';
import { wish } from './support/entries.js';
import { server, stopServer } from './support/place.js';
import { Stage } from './support/stage.js';

afterAll(stopServer);

/** A JSON text of so many bytes. */
function textOf(bytes: number): string {
  return JSON.stringify('x'.repeat(bytes - 2));
}

function under(token: bigint, lock: string): Pick<StateWrite, 'fence'> {
  return { fence: { lock, token } };
}

describe('Many writes in one call', () => {
  const lockOf = (bytes: number): string => 'etcd|lock/'.padEnd(bytes, 'l');
  const fencedSets = (stage: Stage, keyBytes: number, values: readonly string[]): StateWrite[] =>
    values.map((value, n) =>
      wish(`${stage.namespace}/state/${n}-`.padEnd(keyBytes, 'k'), value, under(5n, lockOf(keyBytes))),
    );
  const statusesOf = (answers: readonly WriteAnswer[]): string[] => [
    ...new Set(answers.map(({ status }) => status)),
  ];

  it.each([
    ['values of some kilobytes under long keys', 580, 12_288, 600_000],
    ['the longest value among the longest keys', MAX_FULL_KEY_BYTES, 10, MAX_VALUE_BYTES],
    ['values that are named twice', 60, 16_000, MAX_VALUE_BYTES],
  ])(
    '[B183] never ask for more than the server takes in one request: %s',
    async (_, keyBytes, each, longest) => {
      await using stage = new Stage();
      const { state } = stage.process((await server()).urls);
      const values = [...Array.from({ length: 31 }, () => textOf(each)), textOf(longest)];
      const writes = fencedSets(stage, keyBytes, values);
      const answers = await state.write(writes);
      expect(statusesOf(answers)).toEqual(['written']);
      const entries = await state.read(writes.map(({ key }) => key));
      expect(entries.map((entry) => entry?.value.length)).toEqual(values.map(({ length }) => length));
    },
  );

  it('are one step where all values but the longest are below 64 KiB together, a mebibyte among keys of 400 bytes', async () => {
    await using stage = new Stage();
    const { state } = stage.process((await server()).urls);
    const values = [...Array.from({ length: 31 }, () => textOf(2_100)), textOf(MAX_VALUE_BYTES)];
    const sets = fencedSets(stage, 400, values);
    // A large one that keeps the time of whatever is there has to ask first whether anything is.
    sets[31] = { ...sets[31]!, expect: 'absent' };
    const answers = await state.write(sets);
    expect(statusesOf(answers)).toEqual(['written']);
    // The version of a write is the revision of its transaction.
    expect(new Set(answers.map((answer) => answer.status === 'written' && answer.version)).size).toBe(1);
  });
});
