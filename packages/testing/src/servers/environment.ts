/** Addresses of servers that somebody else runs, read from the environment. */
import { GuardError } from '@guard/core';

/** What an address of a kind of server looks like. */
export interface AddressForm {
  /** Without the colon. The first is the usual one. */
  readonly schemes: readonly [string, ...string[]];
  /** Completes an address without a port. */
  readonly defaultPort: number;
}

/** The address in a variable, or `undefined`. */
export function addressIn(variable: string, form: AddressForm): URL | undefined {
  const [first] = addressesIn(variable, form, 1) ?? [];
  return first;
}

/** Who logs in, and where to, as an address says it: empty where it does not. */
export interface Login {
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

/** The login in an address, each part as it is meant; `parse` has seen that each can be read. */
export function loginIn(url: URL): Login {
  return {
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)),
  };
}

/** The addresses in a variable, separated by commas, or `undefined`. With `count`: so many of them. */
export function addressesIn(variable: string, form: AddressForm, count?: number): URL[] | undefined {
  const text = process.env[variable]?.trim();
  if (!text || process.env['GUARD_TEST_SERVERS'] === 'docker') return undefined;
  const urls = text.split(',').map((each) => parse(variable, each.trim(), form));
  if (count !== undefined && urls.length < count) {
    throw new GuardError('invalid-argument', `${variable} holds ${urls.length} addresses, needed: ${count}`);
  }
  return urls.slice(0, count);
}

function parse(variable: string, text: string, { schemes, defaultPort }: AddressForm): URL {
  // `redis://` and its like are unknown to URL's own defaults, so a missing port stays empty.
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // The text is not shown: a password may stand in it.
  if (!url?.hostname || !schemes.includes(url.protocol.slice(0, -1))) {
    const forms = schemes.map((scheme) => `${scheme}://host:port`).join(' or ');
    const tls = url?.protocol === 'rediss:' ? '; rediss, which is TLS, is not spoken here' : '';
    throw new GuardError('invalid-argument', `${variable} must hold addresses like ${forms}${tls}`);
  }
  const unreadable = unreadablePart(url);
  if (unreadable !== undefined) {
    const why = 'a percent sign in it is written as %25';
    throw new GuardError(
      'invalid-argument',
      `${variable} holds an address whose ${unreadable} cannot be read: ${why}`,
    );
  }
  if (url.port === '') url.port = String(defaultPort);
  return url;
}

/** Which part of the login no text comes of; the error of the function that reads it would name no variable. */
function unreadablePart(url: URL): keyof Login | undefined {
  const parts = { user: url.username, password: url.password, database: url.pathname } as const;
  return (['user', 'password', 'database'] as const).find((part) => !isReadable(parts[part]));
}

function isReadable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
