/** Work that runs under locks of one guard: what `close()` waits for within its grace. */
export class Running {
  private count = 0;
  private readonly idle = new Set<() => void>();

  /** Some work starts. */
  enter(): void {
    this.count += 1;
  }

  /** Some work settled. */
  leave(): void {
    this.count -= 1;
    if (this.count > 0 || this.idle.size === 0) return;
    for (const resolve of this.idle) resolve();
    this.idle.clear();
  }

  /** Resolves when nothing runs. */
  async drained(): Promise<void> {
    if (this.count > 0) await new Promise<void>((resolve) => this.idle.add(resolve));
  }
}
