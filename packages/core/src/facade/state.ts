/** The state part of a guard: keys into full keys, values into JSON, locks into fences. */
import type { Entry, ListedEntry, StateApi, Watch, WatchedChange, WriteOptions } from '../api/state.js';
import type { Random } from '../port/clock.js';
import { MAX_VALUE_BYTES, type Fence, type StateWrite, type StoredEntry } from '../port/state-store.js';
import type { Events } from '../runtime/events.js';
import type { HeldLock } from '../runtime/lock/lock-service.js';
import type { States, WriteOutcome } from '../runtime/state/states.js';
import { parseDuration } from '../value/duration.js';
import { GuardError, invalidArgument } from '../value/error.js';
import { checkPrefix, encodeKey, fullKey, shortKey, type Key } from '../value/key.js';
import { encodeJson } from '../value/json.js';
import { checkFunction, checkOptions } from '../value/options.js';

const PAGE = 200;
const WRITE_OPTIONS = ['ttl', 'lock'];

/** State as applications see it. */
export class StateFacade implements StateApi {
  constructor(
    private readonly states: States,
    private readonly namespace: string,
    private readonly random: Random,
    private readonly events: Events,
  ) {}

  async get<T>(key: Key): Promise<Entry<T> | null> {
    const stored = await this.states.read(this.full(encodeKey('key', key)));
    return stored === null ? null : entryOf<T>(stored, encodeKey('key', key));
  }

  async create(key: Key, value: unknown, options?: WriteOptions): Promise<string | null> {
    return versionOf(await this.write(key, value, 'absent', options, 'none'));
  }

  async update(key: Key, version: string, value: unknown, options?: WriteOptions): Promise<string | null> {
    return versionOf(await this.write(key, value, { version: checkVersion(version) }, options, 'keep'));
  }

  async set(key: Key, value: unknown, options?: WriteOptions): Promise<string> {
    const version = versionOf(await this.write(key, value, 'any', options, 'keep'));
    if (version === null)
      throw new GuardError('unavailable', 'the store refused a write without an expectation');
    return version;
  }

  async delete(key: Key, version?: string, options?: Pick<WriteOptions, 'lock'>): Promise<boolean> {
    checkOptions('delete options', options, ['lock']);
    const expect = version === undefined ? 'any' : { version: checkVersion(version) };
    const held = options?.lock === undefined ? undefined : checkLock(options.lock);
    await held?.assertHeldSoon();
    // A store answers a delete of whatever is there alike, whether or not there was anything.
    const there = expect === 'any' ? await this.states.read(this.full(encodeKey('key', key))) : undefined;
    if (there === null) return false;
    return versionOf(await this.send(key, null, expect, 'none', options?.lock)) !== null;
  }

  async *list<T>(prefix: string): AsyncIterable<ListedEntry<T>> {
    const full = this.full(checkPrefix('prefix', prefix));
    let cursor: string | undefined;
    do {
      const page = await this.states.scan(full, cursor, PAGE);
      for (const stored of page.entries) {
        const key = shortKey(stored.key);
        yield { key, ...entryOf<T>(stored, key) };
      }
      cursor = page.cursor;
    } while (cursor !== undefined);
  }

  async watch<T>(prefix: string, onChange: (change: WatchedChange<T>) => void): Promise<Watch> {
    const full = this.full(checkPrefix('prefix', prefix));
    checkFunction('onChange', onChange);
    const failed = (error: unknown): void =>
      this.events.emit('error', { error, during: 'a watcher of state' });
    const tell = (change: WatchedChange<T>): unknown => onChange(change);
    const subscription = await this.states.watch(full, ({ key, entry }) => {
      try {
        const short = shortKey(key);
        const told = tell({ key: short, entry: entry === null ? null : entryOf<T>(entry, short) });
        // An async listener rejects later, and nobody else would catch that.
        Promise.resolve(told).catch(failed);
      } catch (error) {
        failed(error);
      }
    });
    const close = (): Promise<void> => subscription.close();
    return { close, [Symbol.asyncDispose]: close };
  }

  private write(
    key: Key,
    value: unknown,
    expect: StateWrite['expect'],
    options: WriteOptions | undefined,
    otherwise: 'keep' | 'none',
  ): Promise<WriteOutcome> {
    checkOptions('write options', options, WRITE_OPTIONS);
    const ttl = options?.ttl === undefined ? otherwise : parseDuration('ttl', options.ttl);
    return this.send(key, encodeJson('value', value, MAX_VALUE_BYTES), expect, ttl, options?.lock);
  }

  private async send(
    key: Key,
    value: string | null,
    expect: StateWrite['expect'],
    ttl: StateWrite['ttl'],
    lock: unknown,
  ): Promise<WriteOutcome> {
    const shownKey = encodeKey('key', key);
    const held = lock === undefined ? undefined : checkLock(lock);
    const write: StateWrite = {
      key: this.full(shownKey),
      value,
      expect,
      writeId: this.random.id(),
      ttl,
      ...(held === undefined ? undefined : { fence: fenceOf(held) }),
    };
    const outcome = await this.states.write(write, async () => held?.assertHeldSoon());
    if (outcome.status !== 'fenced') return outcome;
    const message = `a holder of ${held?.key} with token ${outcome.token} wrote ${shownKey} before: ours is ${held?.token}`;
    const doubt = outcome.inDoubt ? { inDoubt: true } : {};
    throw new GuardError('stale-token', message, { key: shownKey, ...doubt });
  }

  private full(shownKey: string): string {
    return fullKey(this.namespace, 'state', shownKey);
  }
}

/** The fence of a lock: tokens are compared within one lock of one backend only. */
function fenceOf(lock: HeldLock): Fence {
  return { lock: `${lock.backendName}|${lock.fullKey}`, token: lock.token };
}

function checkLock(lock: unknown): HeldLock {
  const isLock = typeof lock === 'object' && lock !== null && 'fullKey' in lock && 'assertHeldSoon' in lock;
  if (!isLock) throw invalidArgument('lock', lock, 'must be a lock that a guard granted');
  return lock as HeldLock;
}

function checkVersion(version: unknown): string {
  if (typeof version === 'string' && version !== '') return version;
  throw invalidArgument('version', version, 'must be the version of an entry');
}

function entryOf<T>({ value, version }: StoredEntry, key: string): Entry<T> {
  try {
    return { value: JSON.parse(value) as T, version };
  } catch (cause) {
    const message = `the value of ${key} cannot be read: something else than a guard wrote it; set or delete the key`;
    throw new GuardError('unavailable', message, { cause, key });
  }
}

function versionOf(outcome: WriteOutcome): string | null {
  return outcome.status === 'written' ? outcome.version : null;
}
