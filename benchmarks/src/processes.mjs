// The processes of a stage: those of one contender, started when they are first needed and kept for the next scenario.
import { ContenderProcess } from './contender-process.mjs';

export class Processes {
  #backend;
  #address;
  #kept = new Map();

  constructor({ backend, address }) {
    this.#backend = backend;
    this.#address = address;
  }

  /** The n-th process of a contender. */
  async get(contender, n = 0) {
    const name = `${contender}/${n}`;
    let kept = this.#kept.get(name);
    if (kept === undefined || kept.death !== undefined) {
      kept = new ContenderProcess({
        module: `./backends/${this.#backend}.mjs`,
        contender,
        address: this.#address,
      });
      this.#kept.set(name, kept);
      await kept.call('warm');
    }
    return kept;
  }

  several(contender, count) {
    return Promise.all(Array.from({ length: count }, (_, n) => this.get(contender, n)));
  }

  /** Ends all but the first `keep` of each contender. */
  async endBeyond(keep) {
    const ending = [...this.#kept].filter(([name]) => Number(name.split('/').at(-1)) >= keep);
    for (const [name] of ending) this.#kept.delete(name);
    await Promise.all(ending.map(([, kept]) => kept.end()));
  }

  end() {
    return this.endBeyond(0);
  }
}
