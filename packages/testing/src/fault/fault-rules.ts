/** What can be played, looked at before it is played: a fault with a typing error would be one that never happens. */
import { invalidArgument } from '@guard/core';
import {
  checkCallback,
  checkError,
  requireFlag,
  requireNumber,
  requireOneOf,
  requireOptions,
  requireText,
  requireWhole,
} from '../argument.js';
import type { Fault, FaultScope } from './fault-kinds.js';

const FIELDS: Readonly<Record<Fault['type'], readonly string[]>> = {
  cut: [],
  'lose-reply': [],
  reset: ['executed', 'error'],
  delay: ['requestMs', 'replyMs'],
  'execute-later': ['afterMs', 'answer'],
  'execute-twice': ['afterMs', 'answer'],
  fail: ['executed', 'operations'],
};

const ANSWERS: Readonly<Record<string, readonly string[]>> = {
  'execute-later': ['never', 'reject'],
  'execute-twice': ['first', 'second'],
};

/** Refuses what is no fault. */
export function checkFault(fault: unknown): void {
  if (typeof fault !== 'object' || fault === null) throw invalidArgument('fault', fault, 'must be a fault');
  const { type, ...fields } = fault as { readonly type?: unknown } & Readonly<Record<string, unknown>>;
  requireOneOf('fault.type', type, Object.keys(FIELDS));
  const known = type as Fault['type'];
  requireOptions('fault', fields, FIELDS[known]);
  if (FIELDS[known].includes('executed')) requireFlag('fault.executed', fields['executed']);
  checkError('fault.error', fields['error']);
  checkCallback('fault.operations', fields['operations']);
  for (const name of ['requestMs', 'replyMs']) {
    const delay = fields[name];
    if (delay !== undefined && typeof delay !== 'function') requireNumber(`fault.${name}`, delay, 0);
  }
  if (known === 'execute-later' || fields['afterMs'] !== undefined) {
    if (FIELDS[known].includes('afterMs')) requireNumber('fault.afterMs', fields['afterMs'], 0);
  }
  const answers = ANSWERS[known];
  if (answers === undefined) return;
  if (known === 'execute-later' || fields['answer'] !== undefined) {
    requireOneOf('fault.answer', fields['answer'], answers);
  }
}

/** Refuses what no fault can be limited to. */
export function checkScope(scope: FaultScope<string>, verbs: readonly string[] | undefined): void {
  requireOptions('scope', scope, ['verbs', 'skip', 'times']);
  if (scope.verbs !== undefined) {
    if (!Array.isArray(scope.verbs))
      throw invalidArgument('scope.verbs', scope.verbs, 'must be an array of verbs');
    for (const verb of scope.verbs as readonly unknown[]) {
      if (verbs === undefined) requireText('scope.verbs', verb);
      else requireOneOf('scope.verbs', verb, verbs);
    }
  }
  if (scope.skip !== undefined) requireWhole('scope.skip', scope.skip, 0);
  if (scope.times !== undefined && scope.times !== Infinity) requireWhole('scope.times', scope.times, 1);
}
