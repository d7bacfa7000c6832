/** The example as it is: needs a build, and some ten real seconds. */
import { built, ended, start } from '../../../test/support/example.js';

built();

it('[S7] [L4] three replicas charge each order once and settle each charge once, although one is killed', async () => {
  const { code, output } = await ended(start('nest-billing'));
  expect({ code, output }).toMatchObject({ code: 0 });
  expect(output).toContain('order-1 was asked for 3 times: 1 charge');
  expect(output).toMatch(/replica-[23] {2}charges order-2 \(takeover\)/);
  expect(output).toMatch(/order-2 was charged by replica-[23]/);
  expect(output).toContain('The books are right.');
}, 120_000);
