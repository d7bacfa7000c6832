/** Entries that are large, or many in one request, and those whose lease ends while somebody reads. */
import { MAX_FULL_KEY_BYTES, MAX_VALUE_BYTES, type StateWrite, type WriteAnswer } from '@guard/core';
import { etcdState } from '../src/index.js';
import { beforeTimes, countingTxns, leaseOf, wish, written } from './support/entries.js';
import { server, stopServer } from './support/place.js';
import { Stage } from './support/stage.js';

afterAll(stopServer);

const SMALL = '"small"';

/** A JSON text of so many bytes. */
function textOf(bytes: number, letter = 'x'): string {
  return JSON.stringify(letter.repeat(bytes - 2));
}

function under(token: bigint, lock = 'etcd|lock/a'): Pick<StateWrite, 'fence'> {
  return { fence: { lock, token } };
}

describe('Large entries', () => {
  it('[B183] are listed in a page among small ones, complete and in order, eight requests at a time', async () => {
    await using stage = new Stage();
    const { state, client } = stage.process((await server()).urls);
    const prefix = `${stage.namespace}/state/`;
    const valueOf = (n: number): string =>
      n % 30 === 7 ? textOf(MAX_VALUE_BYTES, 'abcdefghij'[(n - 7) / 30]) : String(n);
    const keys = Array.from({ length: 300 }, (_, n) => `${prefix}e${String(n).padStart(3, '0')}`);
    for (let from = 0; from < keys.length; from += 30) {
      const some = keys.slice(from, from + 30).map((key, n) => wish(key, valueOf(from + n)));
      const answers = await state.write(some);
      expect(answers.every(({ status }) => status === 'written')).toBe(true);
    }
    const counting = countingTxns(client);
    const store = etcdState(counting.client);
    stage.ends(() => store.close());
    const { entries, cursor } = await store.scan(prefix, undefined, 300);
    expect(cursor).toBeUndefined();
    expect(entries.map(({ key }) => key)).toEqual(keys);
    // Compared outside of the assertion: its message would print megabytes.
    expect(entries.flatMap(({ value }, n) => (value === valueOf(n) ? [] : [n]))).toEqual([]);
    expect(counting.peak()).toBeLessThanOrEqual(8);
  });

  it('[S2] [S4] that were small and will be small again keep their time and their fence, and leave nothing behind', async () => {
    await using stage = new Stage();
    const { state, client } = stage.process((await server()).urls);
    const key = `${stage.namespace}/state/k`;
    const values = [SMALL, textOf(20_000), SMALL, textOf(MAX_VALUE_BYTES), textOf(30_000), SMALL];
    let version = await written(state, wish(key, SMALL, { ttl: 600_000, ...under(1n) }));
    const [entryLease, fenceLease] = [
      await leaseOf(client, `guard/s/${key}`),
      await leaseOf(client, `guard/f/${key}`),
    ];
    for (const [n, value] of values.entries()) {
      const expected = n % 2 === 0 ? 'any' : { version };
      const write = wish(key, value, {
        expect: expected,
        ...under(BigInt(n + 2)),
      });
      const next = await written(state, write);
      expect(BigInt(next)).toBeGreaterThan(BigInt(version));
      version = next;
      expect(await state.write([write])).toEqual([{ status: 'written', version }]);
      const [entry] = await state.read([key]);
      expect([entry?.version, entry?.value === value]).toEqual([version, true]);
      expect(entry?.expiresInMs).toBeGreaterThan(500_000);
      const stale = await state.write([wish(key, SMALL, under(BigInt(n + 1)))]);
      expect(stale).toEqual([{ status: 'fenced', token: BigInt(n + 2) }]);
      expect(await leaseOf(client, `guard/s/${key}`)).toBe(entryLease);
      expect(await leaseOf(client, `guard/f/${key}`)).toBe(fenceLease);
    }
    const namesOf = async (): Promise<string[]> => {
      const names = await client.getAll().prefix('guard/').keys();
      return names.filter((name) => name.endsWith(key));
    };
    expect(await namesOf()).toEqual([`guard/f/${key}`, `guard/s/${key}`]);
    await written(state, wish(key, null));
    expect(await namesOf()).toEqual([`guard/d/${key}`, `guard/f/${key}`]);
    for (const name of await namesOf()) expect(await leaseOf(client, name)).not.toBe('0');
  });
});

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

describe('[S6] An entry whose lease ends between the read and the question for its time', () => {
  /** A store whose every question for a time comes after `act`, and the entry with a ttl that it is asked about. */
  async function racing(stage: Stage, act: (turn: number, key: string) => Partial<StateWrite> | undefined) {
    const { state, client } = stage.process((await server()).urls);
    const key = `${stage.namespace}/state/k`;
    await written(state, wish(key, '0', { ttl: 60_000 }));
    let turn = 0;
    const between = async (): Promise<void> => {
      const ID = (await leaseOf(client, `guard/s/${key}`))!;
      const next = act((turn += 1), key);
      if (next !== undefined) await written(state, wish(key, String(turn), next));
      if (next !== undefined || turn === 1) await client.leaseClient.leaseRevoke({ ID });
    };
    const reader = etcdState(beforeTimes(client, between));
    stage.ends(() => reader.close());
    return { reader, key, turns: () => turn };
  }

  it('is not gone where it was written anew under another one', async () => {
    for (const ttl of [120_000, 'none'] as const) {
      await using stage = new Stage();
      const { reader, key } = await racing(stage, (turn) => (turn === 1 ? { ttl } : undefined));
      const [entry] = await reader.read([key]);
      expect(entry?.value).toBe('1');
      expect(entry?.expiresInMs !== undefined).toBe(ttl !== 'none');
    }
  });

  it('is listed where it was written anew under another one', async () => {
    await using stage = new Stage();
    const { reader, key } = await racing(stage, (turn) => (turn === 1 ? { ttl: 120_000 } : undefined));
    const { entries } = await reader.scan(key, undefined, 10);
    expect(entries.map(({ value }) => value)).toEqual(['1']);
  });

  it('is gone where nobody wrote it anew', async () => {
    await using stage = new Stage();
    const { reader, key, turns } = await racing(stage, () => undefined);
    expect(await reader.read([key])).toEqual([null]);
    expect(turns()).toBe(1);
  });

  it('is a fault, not an absence, where that happens without an end', async () => {
    await using stage = new Stage();
    const { reader, key } = await racing(stage, (turn) => ({
      ttl: 120_000 + turn * 1_000,
    }));
    await expect(reader.read([key])).rejects.toThrow('as often as they were read');
  });
});
