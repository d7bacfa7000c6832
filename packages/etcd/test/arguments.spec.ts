/** What is refused when a backend is made, before anything is sent. */
import { GuardError } from '@guard/core';
import { Etcd3 } from 'etcd3';
import { etcdLocks, etcdState } from '../src/index.js';

const client = new Etcd3();
afterAll(() => client.close());

it.each([
  ['an object', {}, undefined, /client must be an Etcd3/],
  [
    'a client without leases and watches',
    { kv: { txn: () => undefined }, prefix: Buffer.from('') },
    undefined,
    /client must be an Etcd3/,
  ],
  ['nothing', undefined, undefined, /client must be an Etcd3.*undefined/],
  ['null for a client', null, undefined, /client must be an Etcd3.*null/],
  ['null for the options', client, null, /must be an object, got null/],
  ['a number for a cluster', client, { cluster: 5 }, /cluster must be a text/],
  ['an empty cluster', client, { cluster: '' }, /cluster must be a text/],
  ['null for a cluster', client, { cluster: null }, /cluster must not be null/],
  ['an object for a cluster', client, { cluster: {} }, /cluster must be a text/],
  ['a clock that is none', client, { clock: {} }, /clock must be a clock/],
  ['an option that does not exist', client, { ttl: 5 }, /no option 'ttl'/],
])('refuses %s, and says why', (_, given, options, why) => {
  for (const make of [etcdLocks, etcdState]) {
    let thrown: unknown;
    try {
      make(given as never, options as never);
    } catch (error) {
      thrown = error;
    }
    expect(GuardError.is(thrown, 'invalid-argument')).toBe(true);
    expect((thrown as Error).message).toMatch(why);
  }
});
