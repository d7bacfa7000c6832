/** What is known of a backend's health, and the breaker that is built in. */
import { GuardError } from '../../src/index.js';
import { systemClock } from '../../src/runtime/clock.js';
import { Events } from '../../src/runtime/events.js';
import { defaultPolicy, Outage } from '../../src/runtime/flight/outage.js';
import { stage } from './stage.js';

test('[L3] a partition in trouble is spared by itself: calls to the others go through', async () => {
  const outage = new Outage('cluster', new Events(), defaultPolicy(systemClock), systemClock);
  const down = new GuardError('unavailable', 'the master of b is down');
  let asked = 0;
  const fails = (): Promise<never> => {
    asked += 1;
    return Promise.reject(down);
  };
  const toB = async (): Promise<void> => {
    await expect(outage.guarded(fails, 'b')).rejects.toBe(down);
    outage.failed(down, 'b');
  };
  for (let n = 0; n < 20; n += 1) {
    await toB();
    await expect(outage.guarded(async () => n, 'a')).resolves.toBe(n);
    outage.answered('a');
  }
  // What is not sent is answered by what broke the circuit.
  expect(asked).toBeLessThan(20);
  await expect(outage.guarded(async () => 'there', '')).resolves.toBe('there');
});

describe('A backend of several partitions', () => {
  function watched() {
    const { clock } = stage();
    const events = new Events();
    const told: string[] = [];
    events.on('backend-unavailable', () => void told.push('unavailable'));
    events.on('backend-recovered', () => void told.push('recovered'));
    return { clock, told, outage: new Outage('cluster', events, defaultPolicy(clock), clock) };
  }

  it('is told to be away once while one of them is, whatever the others answer, and to be back once', () => {
    const { outage, told } = watched();
    for (let n = 0; n < 5; n += 1) {
      outage.failed(new Error('down'), 'b');
      outage.answered('a');
    }
    expect([told, outage.isDown]).toEqual([['unavailable'], true]);
    outage.failed(new Error('down'), 'c');
    outage.answered('b');
    expect(told).toEqual(['unavailable']);
    outage.answered('c');
    expect([told, outage.isDown]).toEqual([['unavailable', 'recovered'], false]);
  });

  it('is back where nobody asks any more for the one that failed, and the others answer', async () => {
    const { clock, outage, told } = watched();
    outage.failed(new Error('moved away'), 'b');
    await clock.advance(10_000);
    outage.answered('a');
    expect(told).toEqual(['unavailable']);
    await clock.advance(10_000);
    outage.answered('a');
    expect(told).toEqual(['unavailable', 'recovered']);
  });
});
