/** Addresses of servers that somebody else runs, read from the environment. */
import { GuardError } from '@guard/core';

/** The address in a variable, or `undefined`. `defaultPort` completes one without a port. */
export function addressIn(variable: string, defaultPort: number): URL | undefined {
  const [first] = addressesIn(variable, defaultPort) ?? [];
  return first;
}

/** The addresses in a variable, separated by commas, or `undefined`. */
export function addressesIn(variable: string, defaultPort: number): URL[] | undefined {
  const text = process.env[variable]?.trim();
  if (!text || process.env['GUARD_TEST_SERVERS'] === 'docker') return undefined;
  return text.split(',').map((each) => parse(variable, each.trim(), defaultPort));
}

function parse(variable: string, text: string, defaultPort: number): URL {
  // `redis://` and its like are unknown to URL's own defaults, so a missing port stays empty.
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // The text is not shown: a password may stand in it.
  if (!url?.hostname) {
    throw new GuardError('invalid-argument', `${variable} must hold addresses like scheme://host:port`);
  }
  if (url.port === '') url.port = String(defaultPort);
  return url;
}
