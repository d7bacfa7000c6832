/**
 * [S6] What a guard says never holds the password of the client that it was handed: while all is well, after the server
 * refused it, and while no server answers.
 */
import { inspect } from 'node:util';
import { createGuard, kvRuns } from '@guard/core';
import { everythingSaid, secretsIn } from '@guard/testing';
import { startEtcd } from '@guard/testing/servers';
import { Etcd3 } from 'etcd3';
import { etcdLocks, etcdState } from '../src/index.js';

const PASSWORD = 'geheim/p@ss';
const WRONG = 'geheim, but wrong';
const SECRETS = [PASSWORD, WRONG, 'geheim'];

async function saidBy(hosts: readonly string[], password: string): Promise<readonly unknown[]> {
  const client = new Etcd3({ hosts: [...hosts], auth: { username: 'root', password } });
  try {
    const [locks, state] = [etcdLocks(client), etcdState(client)];
    const guard = createGuard({ locks, state, runs: kvRuns(state) });
    const said = await everythingSaid(guard);
    await Promise.all([locks.close(), state.close()]);
    return said;
  } finally {
    client.close();
  }
}

it('[S6] no secret of the client is told, whatever becomes of the server', async () => {
  const group = await startEtcd({ onDisk: false });
  try {
    const admin = new Etcd3({ hosts: [...group.urls] });
    await admin.role('root').create();
    await admin.user('root').create(PASSWORD);
    await admin.user('root').addRole('root');
    await admin.auth.authEnable();
    admin.close();
    const [well, refused] = await Promise.all([saidBy(group.urls, PASSWORD), saidBy(group.urls, WRONG)]);
    await group.kill();
    const alone = await saidBy(group.urls, PASSWORD);
    expect(inspect(well, { depth: 3 })).toContain('lock-granted');
    for (const said of [refused, alone]) expect(inspect(said, { depth: 3 })).toContain('[unavailable]');
    for (const said of [well, refused, alone]) expect(secretsIn(said, SECRETS)).toEqual([]);
  } finally {
    await group.stop();
  }
}, 90_000);
