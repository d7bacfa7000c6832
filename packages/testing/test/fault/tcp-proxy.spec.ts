import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { startTcpProxy, VirtualClock, type TcpProxy } from '@guard/testing';

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

  it('lets so many bytes pass in a second', async () => {
    const client = await open();
    proxy.throttle(1_000, 'to-server');
    client.send('x'.repeat(500));
    await settled();
    await clock.advance(499);
    await settled();
    expect(arrived).toEqual([]);
    await clock.advance(1);
    await seen(() => arrived.join('').length === 500);
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
    await lost.happened;
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
    proxy.loseReply().cancel();
    client.send('a');
    await seen(() => client.text === 're:a');
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
