/** The breaker that is built in. */
import { GuardError } from '../../src/index.js';
import { systemClock } from '../../src/runtime/clock.js';
import { Events } from '../../src/runtime/events.js';
import { defaultPolicy, Outage } from '../../src/runtime/flight/outage.js';

test('[L3] a partition in trouble is spared by itself: calls to the others go through', async () => {
  const outage = new Outage('cluster', new Events(), defaultPolicy(systemClock));
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
    outage.answered();
  }
  // What is not sent is answered by what broke the circuit.
  expect(asked).toBeLessThan(20);
  await expect(outage.guarded(async () => 'there', '')).resolves.toBe('there');
});
