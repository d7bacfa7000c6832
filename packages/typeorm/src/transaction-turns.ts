/**
 * One after the other in one transaction. What takes several statements has names of its own on the connection, such as
 * that of a HANDLER on MariaDB, and calls that an application sends at once would meet each other's.
 */
import type { EntityManager } from 'typeorm';

/** All copies of this package in a process share it. */
const TURN = Symbol.for('@guard/typeorm/turn@1');

/** Runs it once those that came before it on the manager's connection have ended, however they ended. */
export function inTurn<T>(manager: EntityManager, run: () => Promise<T>): Promise<T> {
  const runner = (manager.queryRunner ?? manager) as { [TURN]?: Promise<unknown> };
  const turn = (runner[TURN] ?? Promise.resolve()).then(run);
  runner[TURN] = turn.catch(() => undefined);
  return turn;
}
