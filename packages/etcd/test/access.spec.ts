/** What the handed-in client brings along stays in force: certificates, users and roles, and a namespace of its own. */
import { everydayUse, failureOf, reasons, until } from '@guard/testing';
import { startEtcd, type EtcdGroup } from '@guard/testing/servers';
import { Etcd3, Range, type IOptions } from 'etcd3';
import { Authority, credentialsOf } from './support/certificates.js';
import { server, stopServer } from './support/place.js';
import { guardOn, Stage } from './support/stage.js';

afterAll(stopServer);

describe('TLS', () => {
  let authority: Authority;
  let group: EtcdGroup;
  let urls: readonly string[];
  beforeAll(async () => {
    authority = new Authority();
    const { certFile, keyFile, caFile } = authority.certify('server');
    group = await startEtcd({ onDisk: false, tls: { certFile, keyFile, clientCaFile: caFile } });
    urls = group.urls.map((url) => url.replace('127.0.0.1', 'localhost'));
  });
  afterAll(async () => {
    await group.stop();
    authority.end();
  });

  it('stays in force for calls and for streams, with a certificate on both sides', async () => {
    await using stage = new Stage();
    const credentials = credentialsOf(authority.certify('billing'));
    const [one, other] = [0, 1].map(() => stage.process(urls, { credentials }));
    await everydayUse(one!.guard, other!.guard);
    const lock = await one!.guard.acquire('kept', { ttl: '2s' });
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(lock.isHeld()).toBe(true);
  });

  it('[S6] says unavailable, and why, where the client does not know the authority, or shows nothing', async () => {
    await using stage = new Stage();
    const stranger = new Authority();
    stage.ends(() => stranger.end());
    const known = credentialsOf(authority.certify('billing'));
    const rootCertificate = credentialsOf(stranger.certify('x')).rootCertificate;
    for (const credentials of [{ ...known, rootCertificate }, { rootCertificate: known.rootCertificate }]) {
      const { guard } = stage.process(urls, { credentials });
      const error = await failureOf(guard.acquire('k', { wait: '500ms' }));
      expect(error.code).toBe('unavailable');
      expect(reasons(error)).toMatch(/connect|certificate|handshake|SSL/i);
    }
  });
});

describe('Users and roles', () => {
  const root = { username: 'root', password: 'for a test' };
  let group: EtcdGroup;

  /** A client may not ask without a user any more, so what tests need is made first. */
  beforeAll(async () => {
    group = await startEtcd({ onDisk: false, args: ['--auth-token-ttl', '3', '--bcrypt-cost', '4'] });
    const admin = new Etcd3({ hosts: [...group.urls] });
    const rights = admin.role('guard');
    await rights.create();
    await rights.grant({ permission: 'Readwrite', range: Range.prefix('guard/') });
    await rights.grant({ permission: 'Readwrite', range: Range.prefix('app/guard/') });
    await admin.role('stranger').create();
    for (const name of ['guard', 'stranger']) {
      await admin.user(name).create(`${name}’s`);
      await admin.user(name).addRole(name);
    }
    await admin.role('root').create();
    await admin.user(root.username).create(root.password);
    await admin.user(root.username).addRole('root');
    await admin.auth.authEnable();
    admin.close();
  });
  afterAll(() => group.stop());

  const as = (username: string): Partial<IOptions> => ({ auth: { username, password: `${username}’s` } });

  it('a user with the documented rights can do everything, below a namespace of the client too', async () => {
    await using stage = new Stage();
    const [one, other] = [0, 1].map(() => stage.process(group.urls, as('guard')));
    await everydayUse(one!.guard, other!.guard);
    const clients = [0, 1].map(() => stage.client(group.urls, as('guard')).namespace('app/'));
    const [first, second] = clients.map((client) => guardOn(stage, client));
    await everydayUse(first!.guard, second!.guard);
  });

  it('[S6] one without them is told that permission is denied, never that a lock is busy', async () => {
    await using stage = new Stage();
    const { guard } = stage.process(group.urls, as('stranger'));
    const calls = [guard.tryAcquire('k'), guard.acquire('k', { wait: '500ms' }), guard.state.get('k')];
    for (const error of await Promise.all(calls.map(failureOf))) {
      expect(error.code).toBe('unavailable');
      expect(reasons(error)).toMatch(/permission denied/);
    }
    const refused = stage.process(group.urls, { auth: { username: 'guard', password: 'wrong' } });
    const error = await failureOf(refused.guard.acquire('k', { wait: '500ms' }));
    expect(error.code).toBe('unavailable');
    expect(reasons(error)).toMatch(/authentication failed/);
  });

  it('[B28] [S6] keeps a lock and a watch beyond the life of tokens, over a restart that forgets them too', async () => {
    await using stage = new Stage();
    const [a, b] = [0, 1].map(() => stage.process(group.urls, as('guard')));
    const heard: unknown[] = [];
    const watch = await b!.guard.state.watch<number>('w', ({ entry }) => void heard.push(entry?.value));
    stage.ends(() => watch.close());
    const lost: string[] = [];
    a!.guard.on('lock-lost', ({ key }) => void lost.push(key));
    const lock = await a!.guard.acquire('long', { ttl: '4s' });
    const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
    await pass(7_000);
    expect(lock.isHeld()).toBe(true);
    await (await b!.guard.acquire('another')).release();
    const began = performance.now();
    await group.restart({ keepData: true });
    const tookMs = performance.now() - began;
    await pass(4_000);
    // Lost only where the server was away for that long, and then it was told.
    if (tookMs < 2_000) expect(lock.isHeld()).toBe(true);
    expect(lost).toEqual(lock.isHeld() ? [] : ['long']);
    await (await b!.guard.acquire('another', { wait: '20s' })).release();
    // The client that wrote nothing meanwhile finds its way back by its first writes.
    await until('a write', () =>
      a!.guard.state.set('w', 7).then(
        () => true,
        () => false,
      ),
    );
    await until('news over the watch', () => heard.includes(7));
  });
});

describe('A namespace of the client', () => {
  it('is honoured by every key, and separates guards of one name as different clusters do', async () => {
    await using stage = new Stage();
    const { urls } = await server();
    const [own, same, other] = ['app1/', 'app1/', 'app2/'].map((prefix) =>
      guardOn(stage, stage.client(urls).namespace(prefix)),
    );
    await everydayUse(own!.guard, same!.guard);
    await using lock = await own!.guard.acquire('k');
    await using beside = await other!.guard.acquire('k');
    expect(lock.isHeld() && beside.isHeld()).toBe(true);
    expect(await same!.guard.tryAcquire('k')).toBeNull();
    expect(own!.locks.name).toBe(same!.locks.name);
    expect(own!.locks.name).not.toBe(other!.locks.name);
    const keys = (await stage.client(urls).getAll().keys()).filter((key) => key.includes(stage.namespace));
    expect(keys.length).toBeGreaterThan(2);
    expect(keys.filter((key) => !/^app[12]\/guard\/[lntsfd]\//.test(key))).toEqual([]);
  });

  it('[B57] keys and entries named like data of the application leave that data alone', async () => {
    await using stage = new Stage();
    const { guard, client } = stage.process((await server()).urls);
    for (const key of ['orders', 'users', 'jobs']) await client.put(key).value(`mine: ${key}`);
    for (const key of ['orders', 'users', 'jobs']) {
      const lock = await guard.tryAcquire(key);
      expect(await guard.state.create(key, 1)).not.toBeNull();
      expect(await lock?.release()).toBe('released');
      expect(await client.get(key).string()).toBe(`mine: ${key}`);
      expect((await guard.state.get(key))?.value).toBe(1);
    }
  });
});
