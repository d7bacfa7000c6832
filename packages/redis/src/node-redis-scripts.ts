/**
 * Scripts over node-redis. Replies are read as plain texts and numbers, whatever type mapping the application's client
 * has, or the clients behind it, which a cluster and a sentinel send through. A sentinel client sends a command again by itself, and tells nobody, when the connection to its master
 * breaks; so there each sending is counted.
 */
import { followed, isNoScript, PROBE, type Acks, type ScriptArgument } from './connection.js';
import type { Script } from './scripts/script.js';

interface ScriptCall {
  readonly keys: string[];
  readonly arguments: (string | Buffer)[];
}

interface Pipeline {
  evalSha(sha: string, call: ScriptCall): Pipeline;
  eval(text: string, call: ScriptCall): Pipeline;
  wait(replicas: number, timeoutMs: number): Pipeline;
  execAsPipeline(): Promise<readonly unknown[]>;
}

/** The commands that are used of a node-redis client, cluster or sentinel. */
export interface NodeRedisCommands {
  evalSha(sha: string, call: ScriptCall): Promise<unknown>;
  eval(text: string, call: ScriptCall): Promise<unknown>;
  multi(): unknown;
}

interface Internals {
  withTypeMapping?(mapping: object): NodeRedisCommands;
  /** Of a sentinel: runs a function with the master's own client, and again after the connection broke. */
  getMasterNode?: unknown;
  _execute?<T>(isReadonly: boolean, run: (client: NodeRedisCommands) => Promise<T>): Promise<T>;
  readonly _keyPrefix?: string;
}

/** What a script answered, and how many replicas confirmed it. */
export interface ScriptAnswer {
  readonly value: unknown;
  readonly acks: number;
}

type RunScript = (
  script: Script,
  keys: readonly string[],
  args: readonly ScriptArgument[],
  acks?: Acks,
) => Promise<ScriptAnswer>;

/** `onResent` is called when a script is sent once more by the client itself. */
export function nodeRedisScripts(client: NodeRedisCommands, onResent: () => void): RunScript {
  const internals = client as NodeRedisCommands & Internals;
  const unmapped = internals.withTypeMapping?.({}) ?? client;
  const isSentinel = internals.getMasterNode !== undefined && internals._execute !== undefined;
  return async (script, keys, args, acks) => {
    // The master's own client behind a sentinel knows nothing of the prefix.
    const prefix = isSentinel ? (internals._keyPrefix ?? '') : '';
    const call = {
      keys: keys.map((key) => prefix + key),
      arguments: args.map((arg) => (typeof arg === 'number' ? String(arg) : arg)),
    };
    if (!isSentinel) {
      const flight = () => orWhole((text) => send(unmapped, text, script, call, acks));
      if (acks === undefined) return flight();
      return followed(flight, () => unmapped.eval(PROBE, { keys: call.keys.slice(0, 1), arguments: [] }));
    }
    return orWhole((text) => {
      let sendings = 0;
      return internals._execute!(false, (master) => {
        sendings += 1;
        if (sendings > 1) onResent();
        return send(master, text, script, call, acks);
      });
    });
  };
}

/** By its hash, and whole where the server does not know it. */
async function orWhole(run: (by: 'evalSha' | 'eval') => Promise<ScriptAnswer>): Promise<ScriptAnswer> {
  try {
    return await run('evalSha');
  } catch (error) {
    if (!isNoScript(error)) throw error;
    return run('eval');
  }
}

async function send(
  client: NodeRedisCommands,
  by: 'evalSha' | 'eval',
  script: Script,
  call: ScriptCall,
  acks: Acks | undefined,
): Promise<ScriptAnswer> {
  const text = by === 'eval' ? script.text : script.sha;
  if (acks === undefined) return { value: plain(await client[by](text, call)), acks: 0 };
  // WAIT counts what its own connection wrote, so both go down one connection, one right after the other.
  const pipeline = (client.multi() as Pipeline)[by](text, call);
  const [value, confirmed] = await pipeline.wait(acks.replicas, acks.timeoutMs).execAsPipeline();
  return { value: plain(value), acks: Number(plain(confirmed)) };
}

/** Texts, also where a type mapping made bytes of them. */
function plain(value: unknown): unknown {
  if (typeof value === 'string' || typeof value === 'number') return value;
  if (Buffer.isBuffer(value)) return value.toString();
  return Array.isArray(value) ? value.map(plain) : value;
}
