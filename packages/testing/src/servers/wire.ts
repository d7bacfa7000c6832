/**
 * The few bytes that it takes to ask a server whether it serves. Client libraries are not used: they reconnect, pool
 * and retry, and this package would depend on all of them.
 */
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { connect, type Socket } from 'node:net';
import { LOOPBACK } from './ports.js';

const ANSWER_WITHIN_MS = 2_000;

/** How Redis begins the error of somebody who did not log in, or not rightly. */
const LOGIN_REFUSED = /^(NOAUTH|WRONGPASS|NOPERM|ERR invalid password)\b/;

/** A reply of Redis. Errors are thrown. */
export type RedisReply = string | number | null | readonly RedisReply[];

/** Sends one command to Redis and answers its reply. */
export async function redisCommand(port: number, args: readonly string[], url?: URL): Promise<RedisReply> {
  const login = url?.password
    ? [
        [
          'AUTH',
          ...(url.username ? [decodeURIComponent(url.username)] : []),
          decodeURIComponent(url.password),
        ],
      ]
    : [];
  const commands = [...login, args];
  const bytes = await exchange(url?.hostname ?? LOOPBACK, port, commands.map(encode).join(''), (received) => {
    return parseReplies(received).length >= commands.length;
  });
  const replies = parseReplies(bytes);
  const reply = replies.at(-1);
  // What went wrong first is why the rest did.
  if (reply instanceof Error)
    throw withoutSecret(replies.find((each) => each instanceof Error) ?? reply, url);
  return reply ?? null;
}

/** How a server refused the login, in the word that Redis has for it; `undefined` for any other error. */
export function refusedLogin(error: unknown): string | undefined {
  return LOGIN_REFUSED.exec((error as Error).message)?.[1];
}

/** Some servers repeat a command that they do not understand. */
function withoutSecret(error: Error, url: URL | undefined): Error {
  const password = decodeURIComponent(url?.password ?? '');
  return password === '' ? error : new Error(error.message.replaceAll(password, '…'));
}

/** Asks etcd over HTTP and answers the parsed JSON. */
export function etcdRequest(url: string, path: string, body?: object): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    const target = new URL(path, url);
    const request = target.protocol === 'https:' ? requestHttps : requestHttp;
    const sent = request(
      target,
      { method: body === undefined ? 'GET' : 'POST', timeout: ANSWER_WITHIN_MS, agent: false },
      (response) => {
        let text = '';
        response.on('data', (chunk) => (text += String(chunk)));
        response.on('end', () => {
          try {
            resolve(JSON.parse(text) as Record<string, unknown>);
          } catch (error) {
            reject(new Error('etcd answered no JSON', { cause: error }));
          }
        });
      },
    );
    sent.on('timeout', () => sent.destroy(new Error('no answer')));
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/**
 * Begins a session with Postgres, or PgBouncer, and leaves again. Rejects while the server refuses all sessions.
 * Answers its version where it told it, which it does only to a user who needs no password.
 */
export async function postgresGreeting(
  port: number,
  { host = LOOPBACK, user = 'guard', database = 'postgres' } = {},
): Promise<string | undefined> {
  const words = Buffer.from(`user\0${user}\0database\0${database}\0\0`);
  const head = Buffer.alloc(8);
  head.writeInt32BE(8 + words.length, 0);
  head.writeInt32BE(196_608, 4); // version 3.0 of the protocol
  const bytes = await exchange(host, port, Buffer.concat([head, words]), (received) => {
    // Complete: an error, a question for a password, or "ready for queries".
    if (received[0] === 0x45) return true;
    if (received.length >= 9 && received[0] === 0x52 && received.readInt32BE(5) !== 0) return true;
    return received.subarray(-6, -1).equals(Buffer.from([0x5a, 0, 0, 0, 5]));
  });
  const text = bytes.toString('latin1');
  // 57P03: cannot connect now. Any other refusal (no such user, no such database) comes from a server that serves.
  if (text.startsWith('E') && text.includes('C57P03')) throw new Error('the server is starting');
  return /server_version\0([^\0]+)\0/.exec(text)?.[1];
}

/** Reads the greeting of MariaDB or MySQL, and answers the version in it. */
export async function mariadbGreeting(port: number, host = LOOPBACK): Promise<string> {
  const bytes = await exchange(host, port, '', (received) => received.length > 5 && received.includes(0, 5));
  if (bytes[4] !== 10) throw new Error('the server refuses connections');
  const text = bytes.toString('latin1', 5, bytes.indexOf(0, 5));
  return text.replace(/^5\.5\.5-/, '');
}

/** `true` where `ask` answers, `false` where it rejects. */
export async function answers(ask: () => Promise<unknown>): Promise<boolean> {
  return ask().then(
    () => true,
    () => false,
  );
}

/** Connects, sends, and reads until `isComplete`. */
function exchange(
  host: string,
  port: number,
  bytes: string | Buffer,
  isComplete: (received: Buffer) => boolean,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0);
    const socket: Socket = connect({ host, port });
    const fail = (error: Error): void => {
      socket.destroy();
      reject(error);
    };
    socket.setTimeout(ANSWER_WITHIN_MS, () => fail(new Error('no answer')));
    socket.on('error', fail);
    socket.on('end', () => fail(new Error('the server ended the connection')));
    socket.on('connect', () => socket.write(bytes));
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      try {
        if (!isComplete(received)) return;
      } catch (error) {
        // Another protocol. A throw in this handler would end the process.
        fail(error as Error);
        return;
      }
      socket.destroy();
      resolve(received);
    });
  });
}

function encode(args: readonly string[]): string {
  return `*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join('')}`;
}

/** All complete replies at the beginning of `bytes`. */
function parseReplies(bytes: Buffer): (RedisReply | Error)[] {
  const replies: (RedisReply | Error)[] = [];
  let at = 0;
  for (;;) {
    const parsed = parseReply(bytes, at);
    if (parsed === undefined) return replies;
    replies.push(parsed.reply);
    at = parsed.end;
  }
}

function parseReply(bytes: Buffer, at: number): { reply: RedisReply | Error; end: number } | undefined {
  const lineEnd = bytes.indexOf('\r\n', at);
  if (lineEnd < 0) return undefined;
  const line = bytes.toString('utf8', at + 1, lineEnd);
  const next = lineEnd + 2;
  const length = Number(line);
  switch (bytes.toString('latin1', at, at + 1)) {
    case '+':
      return { reply: line, end: next };
    case '-':
      return { reply: new Error(line), end: next };
    case ':':
      return { reply: length, end: next };
    case '$':
      if (length < 0) return { reply: null, end: next };
      if (bytes.length < next + length + 2) return undefined;
      return { reply: bytes.toString('utf8', next, next + length), end: next + length + 2 };
    case '*':
      return parseArray(bytes, next, length);
    default:
      throw new Error('this is not Redis');
  }
}

function parseArray(
  bytes: Buffer,
  start: number,
  length: number,
): { reply: RedisReply | Error; end: number } | undefined {
  if (length < 0) return { reply: null, end: start };
  const items: RedisReply[] = [];
  let at = start;
  for (let index = 0; index < length; index++) {
    const parsed = parseReply(bytes, at);
    if (parsed === undefined) return undefined;
    if (parsed.reply instanceof Error) return parsed;
    items.push(parsed.reply);
    at = parsed.end;
  }
  return { reply: items, end: at };
}
