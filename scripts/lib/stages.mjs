// Named stages with their times, and the table that is printed at the end.

export class Stages {
  #rows = [];
  #startedAt = performance.now();

  /**
   * Runs one stage. `work` answers whether it went well, or `{ skipped: why }`; a stage that throws has failed. A
   * skipped stage shows nothing, and its row in the table says so.
   */
  run(name, work) {
    console.log(`\n=== ${name}`);
    return this.#run(name, work);
  }

  /**
   * Runs one stage beside others. `work` answers what it has to say as well, `{ answer, output }`, which is shown whole
   * when the stage is over: the texts of two stages do not mix.
   */
  runBesideOthers(name, work) {
    console.log(`\n=== ${name} starts`);
    return this.#run(name, async () => {
      const { answer, output } = await work();
      console.log(`\n=== ${name}\n${output.trimEnd()}`);
      return answer;
    });
  }

  async #run(name, work) {
    const startedAt = performance.now();
    let answer = false;
    try {
      answer = await work();
    } catch (error) {
      console.error(error instanceof Error ? error.message : error);
    }
    const skipped = typeof answer?.skipped === 'string' ? answer.skipped : undefined;
    // Whoever answers nothing has not said that it went well.
    const verdict = skipped ? 'SKIPPED' : answer === true ? 'ok' : 'FAILED';
    this.#rows.push({ name, verdict, skipped, seconds: (performance.now() - startedAt) / 1000 });
    return answer === true;
  }

  /** Whether one of them failed, or there was none. */
  get failed() {
    return this.#rows.length === 0 || this.#rows.some((row) => row.verdict === 'FAILED');
  }

  print() {
    const width = Math.max(0, ...this.#rows.map((row) => row.name.length));
    console.log('');
    for (const { name, verdict, skipped, seconds } of this.#rows) {
      const time = `${seconds.toFixed(1).padStart(7)} s`;
      console.log(`${name.padEnd(width)}  ${verdict.padEnd(7)}  ${time}${skipped ? `  ${skipped}` : ''}`);
    }
    // Not the sum: some stages run side by side.
    const total = (performance.now() - this.#startedAt) / 1000;
    console.log(`${'together'.padEnd(width)}  ${' '.repeat(7)}  ${total.toFixed(1).padStart(7)} s`);
    // A row in the middle of a table is easily passed over.
    for (const { name, skipped } of this.#rows.filter((row) => row.skipped))
      console.log(`SKIPPED, so that nothing was shown of it: ${name} (${skipped})`);
    console.log('');
  }
}
