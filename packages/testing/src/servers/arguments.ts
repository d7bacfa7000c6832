/** Checks of what callers hand in, before anything is looked for or started. */
import { checkOptions, invalidArgument } from '@guard/core';

/** Refuses a value that an option cannot have. */
export type Check = (argument: string, value: unknown) => void;

/**
 * Refuses options that do not exist, values that do not fit, and the lack of those that are required.
 *
 * @throws GuardError `invalid-argument` naming the option.
 */
export function checkGiven(
  argument: string,
  options: unknown,
  checks: Readonly<Record<string, Check>>,
  required: readonly string[] = [],
): void {
  checkOptions(argument, options, Object.keys(checks));
  for (const [name, check] of Object.entries(checks)) {
    const value = (options as Readonly<Record<string, unknown>> | undefined)?.[name];
    if (value !== undefined) check(`${argument}.${name}`, value);
    else if (required.includes(name)) throw invalidArgument(`${argument}.${name}`, value, 'must be given');
  }
}

/** Yes or no. */
export const flag: Check = (argument, value) => {
  if (typeof value !== 'boolean') throw invalidArgument(argument, value, 'must be true or false');
};

/** A text with something in it. */
export const text: Check = (argument, value) => {
  if (typeof value !== 'string' || value === '') throw invalidArgument(argument, value, 'must be a text');
};

/** A list of texts. */
export const texts: Check = (argument, value) => {
  if (!Array.isArray(value)) throw invalidArgument(argument, value, 'must be an array of texts');
  for (const [index, each] of value.entries()) {
    if (typeof each !== 'string') throw invalidArgument(`${argument}[${index}]`, each, 'must be a text');
  }
};

/** A whole number within limits. */
export function whole(min: number, max: number): Check {
  return (argument, value) => {
    if (Number.isInteger(value) && Number(value) >= min && Number(value) <= max) return;
    throw invalidArgument(argument, value, `must be a whole number from ${min} to ${max}`);
  };
}

/** One of a few values. */
export function oneOf(...values: readonly (string | number)[]): Check {
  return (argument, value) => {
    if (values.some((each) => each === value)) return;
    throw invalidArgument(
      argument,
      value,
      `must be ${values.map((each) => JSON.stringify(each)).join(' or ')}`,
    );
  };
}

/** Options inside of options. */
export function group(checks: Readonly<Record<string, Check>>, required: readonly string[] = []): Check {
  return (argument, value) => checkGiven(argument, value, checks, required);
}

/** What `restart` is called with. */
export function checkRestart(options: unknown): void {
  checkGiven('restart options', options, { keepData: flag }, ['keepData']);
}
