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
  if (url.port === '') url.port = String(defaultPort);
  return url;
}
