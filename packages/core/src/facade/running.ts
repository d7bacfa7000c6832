/** Work that runs under locks of one guard: what `close()` waits for within its grace. */
export class Running {
  private count = 0;
  private readonly idle = new Set<() => void>();

  /** Runs work and counts it until it settles. */
  async track<T>(work: () => Promise<T>): Promise<T> {
    this.count += 1;
    try {
      return await work();
    } finally {
      this.count -= 1;
      if (this.count === 0) this.tellIdle();
    }
  }

  /** Resolves when nothing runs. */
  async drained(): Promise<void> {
    if (this.count > 0) await new Promise<void>((resolve) => this.idle.add(resolve));
  }

  private tellIdle(): void {
    for (const resolve of this.idle) resolve();
    this.idle.clear();
  }
}
