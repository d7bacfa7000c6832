import { createGuard, memoryLocks } from '@guard/core';
import { everythingTold, secretsIn } from '@guard/testing';

describe('secretsIn', () => {
  it.each([
    ['the message', new Error('no geheim here')],
    ['a property', Object.assign(new Error('x'), { options: { pass: 'geheim' } })],
    ['the causes', new Error('x', { cause: new Error('y', { cause: { deep: 'geheim' } }) })],
    ['errors of one', new AggregateError([new Error('geheim')])],
    ['what is not enumerable', Object.defineProperty(new Error('x'), 'client', { value: 'geheim' })],
    ['what stands under a symbol', Object.assign(new Error('x'), { [Symbol('s')]: 'geheim' })],
    ['a map', [new Map([['k', { v: 'geheim' }]])]],
    ['an address, encoded', new Error('redis://:ge%2Fheim@h'), 'ge/heim'],
    ['an address that left a plus as it is', new URL('redis://u:a%20b+c@h').href, 'a b+c'],
    ['an address, encoded in small letters', 'redis://:ge%2fheim@h', 'ge/heim'],
    ['a form', new URLSearchParams({ pass: 'ge heim/' }).toString(), 'ge heim/'],
    ['JSON', JSON.stringify({ pass: 'ge"heim' }), 'ge"heim'],
    ['JSON in JSON', JSON.stringify({ body: JSON.stringify({ pass: 'ge"heim' }) }), 'ge"heim'],
    ['a plain text', 'geheim'],
    ['a buffer', { raw: Buffer.from('pass=geheim') }],
    ['bytes as JSON has them', { raw: Buffer.from('pass=geheim').toJSON() }],
    ['the head of a request', `Authorization: Basic ${Buffer.from('me:geheim').toString('base64')}`],
    ['base64 behind one letter', Buffer.from('1geheim!').toString('base64')],
    ['base64 behind two letters', Buffer.from('12geheim!').toString('base64url')],
    ['hexadecimal', Buffer.from('geheim').toString('hex')],
    ['the key of a property', { geheim: true }],
    [
      'what a getter throws',
      {
        get url() {
          throw new Error('no access to geheim');
        },
      },
    ],
    [
      'what stands beside a getter that throws',
      {
        get url() {
          throw new Error('no');
        },
        pass: 'geheim',
      },
    ],
    [
      'what its printed form throws',
      {
        toString: () => {
          throw new Error('geheim');
        },
      },
    ],
  ])('finds a secret in %s', (_where, told, secret = 'geheim') => {
    expect(secretsIn(told, ['nothing', secret])).not.toEqual([]);
  });

  it('says where it is', () => {
    expect(secretsIn({ list: [{ password: 'geheim' }] }, ['geheim'])).toEqual([
      'printed',
      'it.list.0.password',
    ]);
  });

  it('finds nothing where there is nothing, and comes to an end on a ring', () => {
    const ring = Object.assign(new Error('x'), { self: {} });
    ring.self = ring;
    expect(secretsIn(ring, ['geheim'])).toEqual([]);
  });

  it('bears what cannot be looked at', () => {
    const shy = new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error('no');
        },
      },
    );
    expect(secretsIn([shy, Object.create(null)], ['geheim'])).toEqual([]);
  });

  it('refuses secrets that would be found everywhere', () => {
    expect(() => secretsIn('x', [''])).toThrow(/secrets must be/);
    expect(() => secretsIn('x', 'geheim' as never)).toThrow(/secrets must be/);
  });
});

describe('everythingTold', () => {
  it('is every event of a guard from then on', async () => {
    const guard = createGuard({ locks: memoryLocks() });
    const told = everythingTold(guard);
    await (await guard.acquire('k')).release();
    await guard.close();
    expect(told).toMatchObject([
      { event: 'lock-granted', detail: { key: 'k' } },
      { event: 'lock-released', detail: { key: 'k', result: 'released' } },
    ]);
  });
});
