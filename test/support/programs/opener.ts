/** How a program of these tests comes to its backends: a module of the adapter's tests, loaded in the program's process. */
import type { LockBackend, RunStore } from '@guard/core';

/** What a program works on. */
export interface Opened {
  readonly locks: LockBackend;
  readonly runs: RunStore;
  /** Lets go of the client, after the guard is closed. */
  close(): Promise<void>;
}

/** The default export of such a module. `place`: what the suite was told, as plain data. */
export type Opener<Place = never> = (place: Place) => Promise<Opened>;

/** What every program is told. */
export interface Programmed {
  /** Path of the module. */
  readonly opener: string;
  readonly place: unknown;
  /** Of its guard: one for each test, because programs of an earlier one may have left records. */
  readonly namespace: string;
}

/** Loads the module and opens what the program works on. */
export async function opened({ opener, place }: Programmed): Promise<Opened> {
  const module = (await import(opener)) as { readonly default: Opener<unknown> };
  return module.default(place);
}
