/**
 * What a server and a session must be like. Most settings do not matter, because Guard's statements bring their own;
 * the few that no statement can change are asked for once on each connection, and refused with the way out.
 */
import { GuardError } from '@guard/core';
import { readOnly } from './faults.js';

/** The row that `GREETING` answers. */
export type Greeting = Readonly<Record<string, unknown>>;

/** Modes that change what a text means where it is read, before any setting of its own holds. */
const MISREADING = ['ORACLE', 'EMPTY_STRING_IS_NULL'];

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
  checkSession(greeting, place);
  if (!['0', 'OFF'].includes(String(greeting['read_only']))) throw readOnly(place);
}

/** Settings that are read with a text, or that hold beyond the statement that they are set for. */
function checkSession(greeting: Greeting, place: string): void {
  const modes = String(greeting['modes']).split(',');
  const misread = MISREADING.filter((mode) => modes.includes(mode));
  if (misread.length > 0) {
    throw refused(place, `has sessions with sql_mode ${misread.join(', ')}: take it out of sql_mode`);
  }
  if (!['0', 'NO_CHAIN'].includes(String(greeting['completion']))) {
    const after = String(greeting['completion']);
    throw refused(
      place,
      `has sessions with completion_type ${after}, in which a COMMIT begins the next transaction or ends the ` +
        `connection: set completion_type = NO_CHAIN`,
    );
  }
  if (!['1', 'ON'].includes(String(greeting['uniques']))) {
    throw refused(
      place,
      `has sessions that may leave a unique index unchecked, which a run begins once by: set unique_checks = 1`,
    );
  }
}

function isSupported(version: string): boolean {
  const [, major, minor] = /(\d+)\.(\d+)\.\d+-MariaDB/i.exec(version) ?? [];
  if (major === undefined || minor === undefined) return false;
  return Number(major) > OLDEST[0] || (Number(major) === OLDEST[0] && Number(minor) >= OLDEST[1]);
}

function refused(place: string, why: string): GuardError {
  return new GuardError('invalid-argument', `dataSource: ${place} ${why}`);
}
