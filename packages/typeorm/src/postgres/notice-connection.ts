/**
 * The connection that messages of Postgres come in by. A pooler in transaction mode accepts LISTEN and never delivers; and
 * what listens then is a session that others use after us. So it is asked first whether the session is our own, and a
 * connection counts only after a message that was sent through the pool came in by it.
 */
import { GuardError, type Clock, type Random, type Timer } from '@guard/core';
import { listening, SEND, SESSION } from '../statements/postgres-notices.js';
import type { Statements } from '../server/statements.js';
import type { PgPool } from './pg.js';
import { channelOf } from './names.js';

/** A client outside of the pool. */
export type NoticeClient = InstanceType<PgPool['Client']>;

/** What connections are made with. */
export interface NoticeParts {
  readonly statements: Statements;
  /** The pool of the application; `undefined` before the data source is initialized, and after it was destroyed. */
  readonly pool: () => PgPool | undefined;
  readonly clock: Clock;
  readonly random: Random;
}

/** Who is told what. */
export interface NoticeEars {
  readonly lost: (client: NoticeClient) => void;
  readonly heard: (channel: string, payload: string) => void;
  /** What it is to listen to from the start. */
  readonly channels: () => Iterable<string>;
}

/** Messages are sent, and something between us and the server keeps them back. */
export class KeptBack extends GuardError {}

/** How long the connection, the probe and a sign of life may take. */
const PATIENCE_MS = 3_000;
/** How long a connection may take to end: a server that stands still does not say goodbye. */
const GOODBYE_MS = 1_000;
/** How often the session is compared with that of others. */
const LOOKS = 3;
/** One for all processes: whatever session is left with it listens to nothing else of ours. */
const PROBE = channelOf('probe');

/** Opens a connection that messages come in by. */
export async function listen(parts: NoticeParts, ears: NoticeEars): Promise<NoticeClient> {
  const pool = parts.pool();
  if (pool === undefined) throw new GuardError('unavailable', 'the data source is not initialized');
  const client = new pool.Client(pool.options);
  let probed: (payload: string) => void = () => undefined;
  client.on('error', () => ears.lost(client));
  client.on('end', () => ears.lost(client));
  client.on('notification', ({ channel, payload = '' }: { channel: string; payload?: string }) =>
    channel === PROBE ? probed(payload) : ears.heard(channel, payload),
  );
  const say = (verb: 'LISTEN' | 'UNLISTEN', channel: string): Promise<unknown> =>
    inTime(parts.clock, client.query({ text: listening(verb, channel) }));
  try {
    await inTime(parts.clock, client.connect());
    client.unref?.();
    if (await isShared(parts, client)) throw keptBack();
    await say('LISTEN', PROBE);
    await probe(parts, (heard) => (probed = heard)).catch(async (error: unknown) => {
      // Another session than the one that listens may take it; nothing more can be done about that.
      await say('UNLISTEN', PROBE).catch(() => undefined);
      throw error;
    });
    await say('UNLISTEN', PROBE);
    for (const channel of ears.channels()) await say('LISTEN', channel);
    return client;
  } catch (error) {
    void hangUp(parts.clock, client);
    throw error;
  }
}

/** Ends a connection. Without an answer in time it is cut: it would keep whoever closes, and the process. */
export function hangUp(clock: Clock, client: NoticeClient): Promise<void> {
  return new Promise((resolve) => {
    const cut = clock.setTimer(() => {
      client.connection?.stream.destroy();
      resolve();
    }, GOODBYE_MS);
    const done = (): void => {
      cut.cancel();
      resolve();
    };
    client.end().then(done, done);
  });
}

/** An answer that comes soon, or an error. */
export function inTime<T>(clock: Clock, work: Promise<T>, late = tooLate): Promise<T> {
  let timer: Timer | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = clock.setTimer(() => reject(late()), PATIENCE_MS);
  });
  return Promise.race([work, expired]).finally(() => timer?.cancel());
}

/**
 * Whether others use the session too. The server itself tells a client which one it has. A pooler tells something else; then it is one
 * where sessions change from one statement to the next, or where a statement over the pool meets ours.
 */
async function isShared({ clock, statements }: NoticeParts, client: NoticeClient): Promise<boolean> {
  const ask = async (): Promise<string> => {
    const { rows } = await inTime(clock, client.query({ text: SESSION }));
    return String(rows[0]?.['session']);
  };
  const first = await ask();
  if (first === String(client.processID)) return false;
  for (let look = 0; look < LOOKS; look += 1) {
    const [row] = await statements.rows(SESSION, [], PATIENCE_MS);
    if (String(row?.['session']) === first || (await ask()) !== first) return true;
  }
  return false;
}

/** Sends a message through the pool and waits for it to come in. */
async function probe(
  { clock, random, statements }: NoticeParts,
  listenFor: (heard: (payload: string) => void) => void,
): Promise<void> {
  const sent = random.id();
  const came = new Promise<void>((resolve) => listenFor((payload) => payload === sent && resolve()));
  await statements.rows(SEND, [PROBE, sent], PATIENCE_MS);
  await inTime(clock, came, keptBack);
}

function tooLate(): GuardError {
  return new GuardError('unavailable', 'the connection for messages of Postgres does not answer');
}

function keptBack(): KeptBack {
  return new KeptBack(
    'unavailable',
    'messages of Postgres do not come in: a pooler in transaction mode keeps them back, and waiters poll',
  );
}
