/** Results, inputs and faults as text: what of the application's world is kept in a record. */
import { MAX_RECORDED_BYTES, type Codec } from '../../api/run.js';
import type { KeptValue } from '../../machine/run-move.js';
import type { RunFault } from '../../machine/run-record.js';
import { encodeJson } from '../../value/json.js';

const MAX_MESSAGE = 2_000;

/** The codec that is used where none is given. What JSON would silently lose is an error: a result is read later. */
export const jsonCodec: Codec = {
  encode: (value) => encodeJson('value', value, Infinity),
  decode: (text) => JSON.parse(text) as unknown,
};

/** A result, or the note that it was omitted; `problem` says why, where it could not be encoded. */
export function keepValue(value: unknown, codec: Codec): KeptValue & { readonly problem?: unknown } {
  if (value === undefined) return {};
  try {
    const text: unknown = codec.encode(value);
    if (typeof text !== 'string') return text === undefined ? {} : { valueOmitted: true };
    return Buffer.byteLength(text) > MAX_RECORDED_BYTES ? { valueOmitted: true } : { value: text };
  } catch (problem) {
    return { valueOmitted: true, problem };
  }
}

/**
 * JSON text of an input or of progress.
 *
 * @throws GuardError `invalid-argument`: not JSON or not without loss (a Map, NaN, a function), or over 64 KiB.
 */
export function jsonText(argument: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  return encodeJson(argument, value, MAX_RECORDED_BYTES);
}

/** Kept JSON text as a value again. */
export function parsed(text: string | undefined): unknown {
  return text === undefined ? undefined : (JSON.parse(text) as unknown);
}

/** An error as it is kept. Whatever was thrown, reading it never throws: the record has to say that it failed. */
export function faultOf(error: unknown): RunFault {
  try {
    return readable(error);
  } catch {
    return { name: 'Error', message: 'what was thrown cannot be read' };
  }
}

function readable(error: unknown): RunFault {
  if (typeof error !== 'object' || error === null) return { name: 'Error', message: clipped(String(error)) };
  const { name, message, code } = error as { name?: unknown; message?: unknown; code?: unknown };
  return {
    name: typeof name === 'string' && name !== '' ? clipped(name) : 'Error',
    message: clipped(typeof message === 'string' ? message : String(message)),
    ...(typeof code === 'string' || typeof code === 'number' ? { code: clipped(String(code)) } : {}),
  };
}

function clipped(text: string): string {
  const short = text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE)}…` : text;
  // What is cut in the middle of a pair, or was broken before, is no text that every store keeps.
  return short.toWellFormed().replaceAll('\0', '');
}
