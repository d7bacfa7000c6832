/**
 * Every way in which guards use a client of a backend, once: for clients with settings of their own, which are to work
 * as plain ones do. Needs backends with messages and with state.
 */
import type { Guard } from '@guard/core';
import { requireGuard } from '../argument.js';
import { assert } from '../contract/assert.js';
import { until } from './awaiting.js';

/** A lock that is handed over by a message, an entry that is watched, and a listing, between two guards on one place. */
export async function everydayUse(first: Guard, second: Guard): Promise<void> {
  requireGuard('first', first);
  requireGuard('second', second);
  const held = await first.acquire('k');
  const waiting = second.acquire('k', { wait: '20s' });
  await until('it waits', async () => (await first.inspect('k')).waiting === 1);
  await held.extend('1m');
  assert.equal(await held.release(), 'released');
  await using next = await waiting;
  assert.ok(next.token > held.token, 'the token grows');

  const seen: unknown[] = [];
  await using _watch = await second.state.watch('e', ({ entry }) => void seen.push(entry?.value));
  const version = await first.state.create('e', 1);
  assert.notEqual(version, null, 'the entry is created');
  assert.notEqual(await first.state.update('e', version!, 2), null, 'the entry is updated');
  await until('the watcher has seen it', () => seen.includes(2));
  const listed: string[] = [];
  for await (const entry of first.state.list('')) listed.push(entry.key);
  assert.deepEqual(listed, ['e']);
}
