/** The example as it is, with an etcd of its own and on one that is there: needs a build. */
import { startEtcd } from '@guard/testing/servers';
import { built, ended, start } from '../../../test/support/example.js';

built();

it('[S1] [S7] loses no payment of two replicas, settles once, and hears of the last balance', async () => {
  const { code, output } = await ended(start('etcd-service'));
  expect({ code, output }).toMatchObject({ code: 0 });
  expect(output).toContain('started for this example');
  expect(output.match(/^replica-\d {2}settled /gm)).toHaveLength(1);
  expect(output).toContain('No payment was lost, and the fee was taken once.');
});

it('[S1] [S7] does the same on a cluster that is there, and again on what is there by then', async () => {
  await using group = await startEtcd({ nodes: 3, onDisk: false });
  for (let times = 0; times < 2; times++) {
    const { code, output } = await ended(start('etcd-service', [], { ETCD_URLS: group.urls.join(',') }));
    expect({ code, output }).toMatchObject({ code: 0 });
    expect(output).toContain('etcd: 3 nodes, yours');
    expect(output).toContain('No payment was lost, and the fee was taken once.');
  }
});
