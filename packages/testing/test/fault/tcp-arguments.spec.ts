/** What a proxy does not know it refuses, before it does anything. */
import { GuardError } from '@guard/core';
import { startTcpProxy, type TcpProxy } from '@guard/testing';

const target = { host: '127.0.0.1', port: 9 };
let proxy: TcpProxy;

beforeAll(async () => {
  proxy = await startTcpProxy({ target });
});

afterAll(() => proxy.close());

describe('A call that is not understood', () => {
  it.each<[string, RegExp, (proxy: TcpProxy) => unknown]>([
    ['no options', /options must be an object/, () => startTcpProxy(undefined as never)],
    ['no target', /options\.target must be an address/, () => startTcpProxy({} as never)],
    ['no host', /options\.target\.host/, () => startTcpProxy({ target: { port: 1 } as never })],
    ['a port', /options\.port/, () => startTcpProxy({ target: target, port: -1 })],
    ['a clock', /options\.clock/, () => startTcpProxy({ target: target, clock: {} as never })],
    ['an option', /no option 'prot'/, () => startTcpProxy({ target: target, prot: 1 } as never)],
    ['a direction', /direction must be 'to-server' or 'to-client'/, (p) => p.cut('to-sever' as never)],
    ['a delay', /delay must be a finite number/, (p) => p.delay(NaN)],
    ['a speed', /bytesPerSecond must be/, (p) => p.throttle(-1)],
    ['no bytes', /bytes must be a whole number/, (p) => p.resetAfter(0, 'to-client')],
    ['a half', /direction must be/, (p) => p.halfClose('x' as never)],
    ['a count', /options\.nth must be a whole number of at least 1/, (p) => p.loseReply({ nth: 0 })],
    ['a kind of loss', /options\.then must be/, (p) => p.loseRequest({ then: 'rest' as never })],
    ['another target', /target must be an address/, (p) => p.redirect(undefined as never)],
  ])('is refused: %s', async (_what, message, call) => {
    const refused = await Promise.resolve(proxy)
      .then(call)
      .catch((error: unknown) => error);
    expect(GuardError.is(refused, 'invalid-argument')).toBe(true);
    expect((refused as Error).message).toMatch(message);
  });
});
