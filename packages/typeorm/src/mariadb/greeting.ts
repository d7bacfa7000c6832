/**
 * What a server and a session must be like. Most settings do not matter, because Guard's statements bring their own;
 * the few that no statement can change are asked for once on each connection, and refused with the way out.
 */
import { GuardError } from '@guard/core';
import { readOnly } from './faults.js';

/** The row that `GREETING` answers. */
export type Greeting = Readonly<Record<string, unknown>>;

/** The oldest server that can read a table out of JSON. */
const OLDEST = [10, 6] as const;

/**
 * Lets a connection pass that Guard can use.
 *
 * @throws GuardError `invalid-argument`: another server, or settings that would break a promise; `unavailable`: it takes
 * no writes.
 */
export function checkGreeting(greeting: Greeting, place: string): void {
  const version = String(greeting['version']);
  if (!isSupported(version)) {
    throw refused(place, `is ${version}: @guard/typeorm needs MariaDB ${OLDEST.join('.')} or later`);
  }
  if (!['1', 'ON'].includes(String(greeting['autocommit']))) {
    throw refused(
      place,
      `has sessions without autocommit: set autocommit = 1 for the data source's connections`,
    );
  }
  if (String(greeting['isolation']) === 'READ-UNCOMMITTED') {
    throw refused(place, `has sessions that read what is not committed: choose a higher isolation level`);
  }
  const sets = [greeting['client'], greeting['connection'], greeting['results']].map(String);
  if (sets.some((set) => set !== 'utf8mb4')) {
    throw refused(place, `has sessions in ${sets.join(', ')}: set charset 'utf8mb4' in the data source`);
  }
  if (!['0', 'OFF'].includes(String(greeting['read_only']))) throw readOnly(place);
}

function isSupported(version: string): boolean {
  const [, major, minor] = /(\d+)\.(\d+)\.\d+-MariaDB/i.exec(version) ?? [];
  if (major === undefined || minor === undefined) return false;
  return Number(major) > OLDEST[0] || (Number(major) === OLDEST[0] && Number(minor) >= OLDEST[1]);
}

function refused(place: string, why: string): GuardError {
  return new GuardError('invalid-argument', `dataSource: ${place} ${why}`);
}
