/** Logins that end, that are outdated, and that meet a member which hangs. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startTcpProxy, until } from '@guard/testing';
import { startEtcd, type EtcdGroup } from '@guard/testing/servers';
import { Etcd3, type IOptions } from 'etcd3';
import { Stage } from './support/stage.js';

const auth = { username: 'root', password: 'for a test' };

/** Lets nobody in without a name any more. */
async function lock(group: EtcdGroup): Promise<void> {
  const admin = new Etcd3({ hosts: [...group.urls] });
  await admin.role('root').create();
  await admin.user(auth.username).create(auth.password);
  await admin.user(auth.username).addRole('root');
  await admin.auth.authEnable();
  admin.close();
}

it('[B28] A client that only watches finds its way back after its token has ended, and opens more watches', async () => {
  await using stage = new Stage();
  await using group = await startEtcd({
    onDisk: false,
    args: ['--auth-token-ttl', '3', '--bcrypt-cost', '4'],
  });
  await lock(group);
  const [node] = group.nodes;
  await using proxy = await startTcpProxy({ target: { host: node!.host, port: node!.port } });
  const far = stage.process([`http://${proxy.host}:${proxy.port}`], { auth });
  const near = stage.process(group.urls, { auth });
  const heard: unknown[] = [];
  const watch = async (prefix: string): Promise<void> => {
    const opened = await far.guard.state.watch(prefix, ({ key }) => void heard.push(key));
    stage.ends(() => opened.close());
  };
  await watch('a/');
  await sleep(5_000);
  await watch('b/');
  await near.guard.state.set('a/1', 1);
  await near.guard.state.set('b/1', 1);
  await until('news of both', () => heard.includes('a/1') && heard.includes('b/1'));
  await sleep(5_000);
  proxy.reset();
  await near.guard.state.set('a/2', 1);
  await near.guard.state.set('b/2', 1);
  await until('news after the break', () => heard.includes('a/2') && heard.includes('b/2'), 20_000);
});

it('[B28] [S6] JWT: when an administrator changes users, locks are kept and watches go on', async () => {
  await using stage = new Stage();
  const folder = mkdtempSync(join(tmpdir(), 'guard-jwt-'));
  stage.ends(() => rmSync(folder, { recursive: true, force: true }));
  const openssl = (...args: string[]): unknown =>
    execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  openssl('genrsa', '-out', 'private.pem', '2048');
  openssl('rsa', '-in', 'private.pem', '-pubout', '-out', 'public.pem');
  const keys = `pub-key=${folder}/public.pem,priv-key=${folder}/private.pem`;
  await using group = await startEtcd({
    onDisk: false,
    args: ['--bcrypt-cost', '4', '--auth-token', `jwt,${keys},sign-method=RS256,ttl=10m`],
  });
  await lock(group);
  const { guard } = stage.process(group.urls, { auth });
  const held = await guard.acquire('held', { ttl: '3s' });
  const heard: unknown[] = [];
  const watch = await guard.state.watch('a/', ({ key }) => void heard.push(key));
  stage.ends(() => watch.close());
  const admin = stage.client(group.urls, { auth });
  await admin.user('somebody').create('else');
  const all = await Promise.all([1, 2, 3].map((n) => guard.tryAcquire(`k${n}`)));
  expect(all.map((one) => one?.isHeld())).toEqual([true, true, true]);
  await guard.state.set('a/1', 1);
  const other = await guard.state.watch('b/', ({ key }) => void heard.push(key));
  stage.ends(() => other.close());
  await guard.state.set('b/1', 1);
  await until('news of both', () => heard.includes('a/1') && heard.includes('b/1'));
  await sleep(4_000);
  expect(held.isHeld()).toBe(true);
});

it('[L3] Users, and the first host hangs: with a deadline for logins, the others serve', async () => {
  await using stage = new Stage();
  await using group = await startEtcd({ nodes: 3, onDisk: false, args: ['--bcrypt-cost', '4'] });
  await lock(group);
  const leader = await group.leader();
  const [first, second] = group.nodes.filter((node) => node !== leader);
  const hosts = [first!.url, leader.url, second!.url];
  const bounded: IOptions['auth'] = { ...auth, callOptions: () => ({ deadline: Date.now() + 1_000 }) };
  await first!.pause();
  try {
    const { guard } = stage.process(hosts, { auth: bounded });
    const taken = await guard.acquire('k', { ttl: '30s', wait: '20s' });
    expect(taken.isHeld()).toBe(true);
  } finally {
    await first!.resume();
  }
});
