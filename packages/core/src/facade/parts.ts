/** Checks of what a guard is made of: a part that is not one is a programming error, and must not look like an outage. */
import type { GuardOptions } from '../api/options.js';
import { GuardError, invalidArgument } from '../value/error.js';

/** What each part has to be able to do. */
const MEMBERS = {
  locks: ['acquire', 'renew', 'release', 'inspect', 'close'],
  state: ['now', 'read', 'write', 'scan', 'watch', 'close'],
  runs: [
    'now',
    'create',
    'get',
    'transition',
    'due',
    'list',
    'events',
    'task',
    'putTask',
    'putNode',
    'nodes',
    'close',
  ],
  policy: ['execute'],
  clock: ['now', 'setTimer', 'yield'],
  random: ['id', 'fraction'],
} as const;
const WITH_TRAITS: readonly string[] = ['locks', 'state', 'runs'];

/**
 * Refuses parts that are missing or are something else.
 *
 * @throws GuardError `invalid-argument` naming the part and what it lacks.
 */
export function checkParts(options: GuardOptions): void {
  if (options.locks === undefined) throw invalidArgument('locks', undefined, 'must be a lock backend');
  for (const [name, members] of Object.entries(MEMBERS)) {
    const part: unknown = options[name as keyof typeof MEMBERS];
    if (part !== undefined) checkPart(name, part, members);
  }
}

function checkPart(name: string, part: unknown, members: readonly string[]): void {
  if (typeof part !== 'object' || part === null) throw invalidArgument(name, part, 'must be an object');
  const held = part as Readonly<Record<string, unknown>>;
  const lacking = members.filter((member) => typeof held[member] !== 'function');
  if (WITH_TRAITS.includes(name) && typeof held['traits'] !== 'object') lacking.push('traits');
  if (lacking.length === 0) return;
  throw new GuardError(
    'invalid-argument',
    `${name} is not what it should be: it has no ${lacking.join(', no ')}`,
  );
}
