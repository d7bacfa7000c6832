/** What a suite is told, looked at before the first case is defined: a typing error must not look like a defect. */
import { invalidArgument } from '@guard/core';
import { checkFlag, requireMethods, requireNumber, requireOneOf, requireOptions } from '../argument.js';

const SHARED = ['runner', 'name', 'virtualTime', 'profile', 'caseTimeoutMs', 'traits', 'create'];

/**
 * Refuses options that no suite can be defined with.
 *
 * @throws GuardError `invalid-argument` naming the option.
 */
export function checkSuite(
  options: unknown,
  traits: Readonly<Record<string, 'boolean' | 'number'>>,
  own: readonly string[] = [],
): void {
  requireOptions('options', options, [...SHARED, ...own]);
  const given = options as Readonly<Record<string, unknown>>;
  requireMethods('options.runner', given['runner'], 'a TestRunner', ['describe', 'it', 'skip']);
  if (typeof given['name'] !== 'string' || given['name'] === '') {
    throw invalidArgument('options.name', given['name'], 'must be a text');
  }
  if (typeof given['create'] !== 'function') {
    throw invalidArgument('options.create', given['create'], 'must be a function that makes a place');
  }
  if (given['profile'] !== undefined) requireOneOf('options.profile', given['profile'], ['quick', 'full']);
  if (given['caseTimeoutMs'] !== undefined) requireNumber('options.caseTimeoutMs', given['caseTimeoutMs'], 1);
  for (const name of ['virtualTime', ...own]) checkFlag(`options.${name}`, given[name]);
  checkTraits(given['traits'], traits);
}

function checkTraits(traits: unknown, known: Readonly<Record<string, 'boolean' | 'number'>>): void {
  if (typeof traits !== 'object' || traits === null) {
    throw invalidArgument('options.traits', traits, `must be the adapter's traits`);
  }
  for (const [name, type] of Object.entries(known)) {
    const value: unknown = Reflect.get(traits, name);
    if (typeof value !== type) throw invalidArgument(`options.traits.${name}`, value, `must be a ${type}`);
  }
}
