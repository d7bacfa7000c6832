/** The statements of notices. A channel's name cannot be a parameter of LISTEN, so only what `channelOf` made passes. */
/** Starts or ends listening to a channel. */
export function listening(verb: 'LISTEN' | 'UNLISTEN', channel: string): string {
  if (!/^guard_[0-9a-f]{32}$/.test(channel)) throw new TypeError(`${channel} is no channel of Guard`);
  return verb === 'LISTEN' ? `LISTEN "${channel}"` : `UNLISTEN "${channel}"`;
}

/** channel, payload */
export const SEND = `SELECT pg_notify($1, $2)::text AS told`;

/** Shows that a connection is there. */
export const ALIVE = `SELECT 1 AS alive`;

/** → which session of the server carries this out, as text whatever the parsers are */
export const SESSION = `SELECT pg_backend_pid()::text AS session`;
