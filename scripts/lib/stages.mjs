// Named stages with their times, and the table that is printed at the end.

export class Stages {
  #rows = [];

  /** Runs one stage. `work` answers whether it went well; a stage that throws has failed. */
  async run(name, work) {
    console.log(`\n=== ${name}`);
    const startedAt = performance.now();
    let ok = false;
    try {
      ok = await work();
    } catch (error) {
      console.error(error instanceof Error ? error.message : error);
    }
    this.#rows.push({ name, ok, seconds: (performance.now() - startedAt) / 1000 });
    return ok;
  }

  get failed() {
    return this.#rows.some((row) => !row.ok);
  }

  print() {
    const width = Math.max(...this.#rows.map((row) => row.name.length));
    console.log('');
    for (const { name, ok, seconds } of this.#rows) {
      console.log(`${name.padEnd(width)}  ${ok ? 'ok    ' : 'FAILED'}  ${seconds.toFixed(1).padStart(7)} s`);
    }
    console.log('');
  }
}
