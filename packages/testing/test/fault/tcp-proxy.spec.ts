import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { failureOf, startTcpProxy, VirtualClock, type TcpProxy } from '@guard/testing';

let server: Server;
/** What arrived at the server, of all connections. */
let arrived: string[];
let serverSockets: Socket[];
let clock: VirtualClock;
let proxy: TcpProxy;
let clients: Client[];

beforeEach(async () => {
  arrived = [];
  serverSockets = [];
  clients = [];
  clock = new VirtualClock();
  server = createServer({ allowHalfOpen: true }, (socket) => {
    serverSockets.push(socket);
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      arrived.push(String(chunk));
      if (socket.writable) socket.write(`re:${String(chunk)}`);
    });
    socket.on('end', () => socket.end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  proxy = await startTcpProxy({ target: targetOf(server), clock });
});

afterEach(async () => {
  for (const client of clients) client.socket.destroy();
  await proxy.close();
  for (const socket of serverSockets) socket.destroy();
  server.close();
});

/** A client that collects what it sees. */
class Client {
  readonly socket: Socket;
  text = '';
  end: 'open' | 'ended' | 'reset' = 'open';

  constructor(port: number) {
    this.socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true });
    this.socket.on('data', (chunk) => (this.text += String(chunk)));
    this.socket.on('end', () => (this.end = 'ended'));
    this.socket.on('error', () => (this.end = 'reset'));
    clients.push(this);
  }

  send(text: string): void {
    this.socket.write(text);
  }
}

async function open(): Promise<Client> {
  const client = new Client(proxy.port);
  client.send('hi');
  await seen(() => client.text === 're:hi');
  client.text = '';
  arrived.length = 0;
  return client;
}

/** Turns of the event loop until something is seen; the test's own limit ends the wait. */
async function seen(look: () => boolean): Promise<void> {
  while (!look()) await new Promise((resolve) => setImmediate(resolve));
}

/** Long enough for anything that travels now to arrive: a byte goes there and back beside the proxy, many times. */
async function settled(): Promise<void> {
  const { port } = targetOf(server);
  for (let round = 0; round < 20; round++) {
    const socket = connect({ host: '127.0.0.1', port });
    socket.write('.');
    await once(socket, 'data');
    socket.destroy();
  }
  arrived = arrived.filter((text) => text !== '.');
}

function targetOf(of: Server): { host: string; port: number } {
  return { host: '127.0.0.1', port: (of.address() as AddressInfo).port };
}

describe('A proxy without a fault', () => {
  it('passes bytes and ends on, and counts connections', async () => {
    const client = await open();
    client.send('a');
    await seen(() => client.text === 're:a');
    expect(proxy.connections).toEqual({ open: 1, accepted: 1 });
    client.socket.end();
    await seen(() => client.end === 'ended');
    await seen(() => proxy.connections.open === 0);
    expect(proxy.connections).toEqual({ open: 0, accepted: 1 });
  });

  it('passes a reset on, from either side', async () => {
    const one = await open();
    serverSockets[0]?.resetAndDestroy();
    await seen(() => one.end === 'reset');
    const two = await open();
    let ended = false;
    serverSockets.at(-1)?.on('error', () => (ended = true));
    two.socket.resetAndDestroy();
    await seen(() => ended);
  });

  it('passes more than it keeps in memory, whole and in order', async () => {
    const client = new Client(proxy.port);
    const big = Array.from({ length: 400_000 }, (_, index) => String(index % 10)).join('');
    for (let round = 0; round < 10; round++) client.send(big);
    await seen(() => arrived.join('').length === 4_000_000);
    expect(arrived.join('')).toBe(big.repeat(10));
  });

  it('lets the sender wait for a receiver that does not read, and then delivers everything', async () => {
    const client = await open();
    serverSockets[0]?.pause();
    const mebibytes = 64;
    for (let round = 0; round < mebibytes; round++) client.socket.write(Buffer.alloc(1_048_576));
    let before: number;
    do {
      before = client.socket.writableLength;
      await settled();
    } while (client.socket.writableLength !== before);
    // The rest is in the buffers of the system, and at most one mebibyte in the proxy.
    expect(before).toBeGreaterThan((mebibytes / 2) * 1_048_576);
    serverSockets[0]?.resume();
    await seen(() => client.socket.writableLength === 0);
  });

  it('leads new connections to another server, and leaves old ones where they are', async () => {
    const client = await open();
    const other = createServer((socket) => socket.on('error', () => undefined).end('other'));
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    proxy.redirect(targetOf(other));
    const second = new Client(proxy.port);
    await seen(() => second.text === 'other');
    client.send('a');
    await seen(() => client.text === 're:a');
    other.close();
  });
});

describe('A cut wire', () => {
  it('is silent, with no reset and no end, and delivers when it heals', async () => {
    const client = await open();
    proxy.cut();
    client.send('a');
    await settled();
    expect([arrived, client.text, client.end]).toEqual([[], '', 'open']);
    proxy.heal();
    await seen(() => client.text === 're:a');
  });

  it('can be cut in one direction only', async () => {
    const client = await open();
    proxy.cut('to-client');
    client.send('a');
    await seen(() => arrived.includes('a'));
    await settled();
    expect([client.text, client.end]).toEqual(['', 'open']);
    proxy.heal();
    await seen(() => client.text === 're:a');
  });

  it('lets no end of a connection through, in either direction', async () => {
    const client = await open();
    proxy.cut();
    serverSockets[0]?.end();
    await settled();
    expect(client.end).toBe('open');
    proxy.heal();
    await seen(() => client.end === 'ended');
  });

  it.each(['server', 'client'] as const)('tells of a reset by the %s only when it heals', async (side) => {
    const client = await open();
    const [server] = serverSockets;
    let heard = false;
    (side === 'server' ? client.socket : server)?.on('error', () => (heard = true));
    proxy.cut();
    (side === 'server' ? server : client.socket)?.resetAndDestroy();
    await settled();
    expect([heard, proxy.connections.open]).toEqual([false, 1]);
    proxy.heal();
    await seen(() => heard && proxy.connections.open === 0);
  });

  it('connects a new client only when it heals', async () => {
    proxy.cut();
    const client = new Client(proxy.port);
    client.send('a');
    await settled();
    expect([arrived, client.end]).toEqual([[], 'open']);
    proxy.heal();
    await seen(() => client.text === 're:a');
  });
});

describe('A slow wire', () => {
  it('delays each direction by itself, and keeps the order', async () => {
    const client = await open();
    const delays = [500, 100];
    proxy.delay(() => delays.shift() ?? 0, 'to-server');
    client.send('a');
    await settled();
    client.send('b');
    await settled();
    expect(arrived).toEqual([]);
    await clock.advance(499);
    await settled();
    expect(arrived).toEqual([]);
    await clock.advance(1);
    await seen(() => arrived.join('') === 'ab');
    await seen(() => client.text.endsWith('b'));
  });

  it('lets a reset come behind the bytes before it', async () => {
    const client = await open();
    proxy.delay(500, 'to-client');
    serverSockets[0]?.write('last');
    await settled();
    await clock.advance(300);
    serverSockets[0]?.resetAndDestroy();
    await settled();
    expect([client.text, client.end]).toEqual(['', 'open']);
    await clock.advance(200);
    await seen(() => client.text === 'last');
    await settled();
    expect(client.end).toBe('open');
    await clock.advance(300);
    await seen(() => client.end === 'reset');
  });

  it('lets so many bytes pass in a second, in small pieces', async () => {
    const client = await open();
    proxy.throttle(1_000, 'to-server');
    client.send('x'.repeat(500));
    await settled();
    await clock.advance(49);
    await settled();
    expect(arrived).toEqual([]);
    await clock.advance(1);
    await seen(() => arrived.join('').length === 50);
    await clock.advance(449);
    await settled();
    expect(arrived.join('')).toHaveLength(450);
    await clock.advance(1);
    await seen(() => arrived.join('').length === 500);
  });

  it.each<[string, (proxy: TcpProxy) => void]>([
    ['a long delay', (slow) => slow.delay(60_000, 'to-server')],
    ['a slow wire', (slow) => slow.throttle(10, 'to-server')],
    ['a wire that carries nothing', (slow) => slow.throttle(0, 'to-server')],
  ])('delivers at once, and in order, what %s held back, when it heals', async (_title, slow) => {
    const client = await open();
    slow(proxy);
    client.send('abc');
    await settled();
    client.send('def');
    await settled();
    expect(arrived).toEqual([]);
    proxy.heal();
    await seen(() => arrived.join('') === 'abcdef');
    client.send('g');
    await seen(() => arrived.join('') === 'abcdefg');
  });

  it('does not count time that passed at another speed', async () => {
    const client = await open();
    proxy.throttle(0, 'to-server');
    client.send('x'.repeat(100));
    await settled();
    await clock.advance(60_000);
    proxy.throttle(1_000, 'to-server');
    await clock.advance(50);
    await seen(() => arrived.join('').length === 50);
    await settled();
    expect(arrived.join('')).toHaveLength(50);
  });
});

describe('A lost message', () => {
  it('of the n-th request: the reply never comes, nor anything after it, and other connections go on', async () => {
    const client = await open();
    const lost = proxy.loseReply({ nth: 2, matches: (request) => request.includes('set') });
    client.send('get');
    await seen(() => client.text === 're:get');
    client.send('set 1');
    await seen(() => client.text.endsWith('re:set 1'));
    client.send('set 2');
    expect(await lost.happened).toBe('lost');
    expect(arrived).toContain('set 2');
    const text = client.text;
    serverSockets[0]?.end('late');
    await settled();
    expect([client.text, client.end]).toEqual([text, 'open']);
    await open();
    proxy.heal();
    await seen(() => client.end === 'reset');
  });

  it('can show itself as a reset in the moment in which the reply would have come', async () => {
    const client = await open();
    const lost = proxy.loseReply({ then: 'reset' });
    client.send('a');
    await lost.happened;
    await seen(() => client.end === 'reset');
    expect([arrived, client.text]).toEqual([['a'], '']);
  });

  it('can be the request itself: the server never gets it', async () => {
    const client = await open();
    const lost = proxy.loseRequest();
    client.send('a');
    await lost.happened;
    await settled();
    expect([arrived, client.text, client.end]).toEqual([[], '', 'open']);
  });

  it('can be given up before it happens', async () => {
    const client = await open();
    const lost = proxy.loseReply();
    lost.cancel();
    expect(await lost.happened).toBe('given-up');
    client.send('a');
    await seen(() => client.text === 're:a');
  });
});

describe('A loss that has not happened', () => {
  it('is given up by heal, before its request and between its request and its reply', async () => {
    const early = proxy.loseReply();
    proxy.heal();
    expect(await early.happened).toBe('given-up');
    const client = await open();
    serverSockets[0]?.removeAllListeners('data').on('data', (chunk) => arrived.push(String(chunk)));
    const late = proxy.loseReply();
    client.send('a');
    await seen(() => arrived.includes('a'));
    proxy.heal();
    expect(await late.happened).toBe('given-up');
    await seen(() => client.end === 'reset');
  });

  it('is given up when its connection ends, and when the proxy closes', async () => {
    const client = await open();
    serverSockets[0]?.removeAllListeners('data').on('data', (chunk) => arrived.push(String(chunk)));
    const lost = proxy.loseReply();
    client.send('a');
    await seen(() => arrived.includes('a'));
    client.socket.resetAndDestroy();
    expect(await lost.happened).toBe('given-up');
    const pending = proxy.loseReply();
    await proxy.close();
    expect(await pending.happened).toBe('given-up');
    expect(await proxy.loseReply().happened).toBe('given-up');
  });
});

describe('A port that is taken', () => {
  it('is an error of the proxy that was to have it', async () => {
    const { port } = targetOf(server);
    const refused = await failureOf(startTcpProxy({ target: targetOf(server), port }));
    expect(refused.code).toBe('unavailable');
    expect(refused.message).toContain(`no proxy on port ${port}`);
  });
});

describe('An end', () => {
  it('by reset reaches both sides, and a new connection is served', async () => {
    const client = await open();
    let serverSaw = false;
    serverSockets[0]?.on('error', () => (serverSaw = true));
    proxy.reset();
    await seen(() => client.end === 'reset' && serverSaw);
    await open();
  });

  it('can come after a given byte of a request', async () => {
    const client = await open();
    proxy.resetAfter(3, 'to-server');
    client.send('ab');
    await seen(() => client.text === 're:ab');
    client.send('cd');
    await seen(() => client.end === 'reset');
    expect('abc'.startsWith(arrived.join(''))).toBe(true);
  });

  it('can come after a given byte of a reply: the client gets that byte, and then a reset', async () => {
    for (let round = 0; round < 5; round++) {
      const client = await open();
      proxy.resetAfter(4, 'to-client');
      client.send('abc');
      await seen(() => client.end !== 'open');
      expect([client.text, client.end]).toEqual(['re:a', 'reset']);
    }
  });

  it('of one direction leaves the other one open', async () => {
    const client = await open();
    let serverEnded = false;
    serverSockets[0]?.on('end', () => (serverEnded = true));
    proxy.halfClose('to-client');
    await seen(() => client.end === 'ended');
    client.send('a');
    await seen(() => arrived.includes('a'));
    expect(serverEnded).toBe(false);
  });

  it('of one direction comes behind the bytes that are under way, and later ones are dropped', async () => {
    const client = await open();
    proxy.delay(500, 'to-client');
    serverSockets[0]?.write('first');
    await settled();
    await clock.advance(200);
    serverSockets[0]?.write(' second');
    await settled();
    proxy.halfClose('to-client');
    serverSockets[0]?.write(' too late');
    await settled();
    expect([client.text, client.end]).toEqual(['', 'open']);
    await clock.advance(300);
    await seen(() => client.text === 'first');
    await settled();
    expect(client.end).toBe('open');
    await clock.advance(200);
    await seen(() => client.end === 'ended');
    expect(client.text).toBe('first second');
    client.send('a');
    await seen(() => arrived.includes('a'));
  });

  it('of one direction comes behind what a slow wire still carries', async () => {
    const client = await open();
    proxy.throttle(0, 'to-client');
    serverSockets[0]?.write('x'.repeat(100_000));
    await settled();
    proxy.halfClose('to-client');
    await settled();
    expect([client.text, client.end]).toEqual(['', 'open']);
    proxy.heal();
    await seen(() => client.end === 'ended');
    expect(client.text).toHaveLength(100_000);
  });

  it('of one direction waits for a cut wire, also on a connection that was opened meanwhile', async () => {
    const before = await open();
    proxy.cut();
    const during = new Client(proxy.port);
    await seen(() => proxy.connections.open === 2);
    proxy.halfClose('to-client');
    await settled();
    expect([before.end, during.end]).toEqual(['open', 'open']);
    proxy.heal();
    await seen(() => before.end === 'ended' && during.end === 'ended');
    for (const client of [before, during]) client.send('a');
    await seen(() => arrived.join('') === 'aa');
  });

  it('meets every new connection while the proxy refuses them', async () => {
    const client = await open();
    proxy.refuse();
    await seen(() => client.end === 'reset');
    const second = new Client(proxy.port);
    await seen(() => second.end === 'reset');
    proxy.heal();
    await open();
  });
});

describe('A function that was handed in and throws', () => {
  const fails = (): never => {
    throw new RangeError('my own mistake');
  };
  const mistake = { code: 'invalid-argument', cause: expect.any(RangeError) };

  /** What the proxy says, and that closing it fails for the same reason, once. */
  async function expectTold(message: RegExp): Promise<void> {
    expect(proxy.failure?.message).toMatch(message);
    expect(await failureOf(proxy.close())).toBe(proxy.failure);
    // The one that the end of the test closes.
    proxy = await startTcpProxy({ target: targetOf(server), clock });
  }

  it('as matches: its loss is given up, the bytes pass, and close tells it', async () => {
    const client = await open();
    const lost = proxy.loseReply({ matches: fails });
    const other = proxy.loseReply({ nth: 2 });
    client.send('a');
    await seen(() => client.text === 're:a');
    expect(await lost.happened).toBe('given-up');
    expect(proxy.failure).toMatchObject(mistake);
    client.send('b');
    expect(await other.happened).toBe('lost');
    await expectTold(/options\.matches threw: my own mistake/);
  });

  it('as delay: the bytes pass at once, and close tells it', async () => {
    const client = await open();
    proxy.delay(fails);
    client.send('a');
    await seen(() => client.text === 're:a');
    expect(proxy.failure).toMatchObject(mistake);
    await expectTold(/delay threw: my own mistake/);
  });

  it.each<[string, RegExp, (proxy: TcpProxy) => void]>([
    ['text as a delay', /delay must answer a finite number .*"5"/, (p) => p.delay(() => '5' as never)],
    ['a delay that is none', /delay must answer .* got NaN/, (p) => p.delay(() => NaN)],
    [
      'a promise for a yes',
      /matches must answer true or false/,
      (p) => void p.loseReply({ matches: (async () => fails()) as never }),
    ],
  ])('is told like one that answers %s', async (_what, message, set) => {
    const client = await open();
    set(proxy);
    client.send('a');
    await seen(() => client.text === 're:a');
    await expectTold(message);
  });

  it('is told by the first of several, and none has failed where nothing was asked', async () => {
    expect(proxy.failure).toBeUndefined();
    proxy.delay(fails, 'to-client');
    proxy.loseReply({ matches: () => fails() });
    const client = new Client(proxy.port);
    client.send('a');
    await seen(() => client.text === 're:a');
    await expectTold(/options\.matches threw/);
  });
});
