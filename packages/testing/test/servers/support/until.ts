import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until `look` answers `true`; fails after 30 s. */
export async function until(what: string, look: () => Promise<boolean>): Promise<void> {
  for (let left = 300; left > 0; left--) {
    if (await look()) return;
    await sleep(100);
  }
  throw new Error(`${what}: not within 30 s`);
}
