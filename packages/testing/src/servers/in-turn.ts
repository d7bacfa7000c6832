/** Work that must not overlap, such as what is done to one server: each piece begins when the one before has ended. */
export class InTurn {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `work` after all that came before, whether or not that succeeded. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }
}
