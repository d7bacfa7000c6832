// What the smoke of containers makes of a machine without an engine. Where one can be had, one that could not be had is a
// defect, for every server is to be shown in a container; elsewhere nothing was shown, and it says so.
const FAILED = 1;
const NOTHING_SHOWN = 75;

/**
 * `{ code, says }`: how the smoke ends, and why. `why` says what is missing; `canHaveOne`: this is root on Debian, who can
 * install an engine and start it.
 */
export function withoutEngine({ why, canHaveOne }) {
  if (!canHaveOne) return { code: NOTHING_SHOWN, says: why };
  const says = `${why}\nThis is root on Debian, where the smoke brings its own engine: without one it has failed.`;
  return { code: FAILED, says };
}
