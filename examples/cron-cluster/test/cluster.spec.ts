/** The example as it is: needs a build, and twelve real seconds. */
import { built, ended, start } from '../../../test/support/example.js';

built();

it('[S7] [S8] runs each second once in three processes, one of which is killed', async () => {
  const { code, output } = await ended(start('cron-cluster'));
  expect({ code, output }).toMatchObject({ code: 0 });
  expect(output).toContain('Each second ran once.');
  expect([...output.matchAll(/^node-\d {2}ran \S+Z \(/gm)].length).toBeGreaterThanOrEqual(8);
}, 90_000);
