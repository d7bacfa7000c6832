/** Records that the sweep cannot read: each is told of once, and keeps no other from being looked at. */
import { emit, type RunHost } from './run-host.js';

/** What one node has told of. */
export class Unreadable {
  private told = new Set<string>();
  private met = new Set<string>();

  constructor(private readonly host: RunHost) {}

  /** Tells of what the last sweep did not meet. */
  meet(errors: readonly Error[] = []): void {
    for (const error of errors) {
      if (!this.told.has(error.message) && !this.met.has(error.message)) {
        emit(this.host, 'error', { error, during: 'a sweep' });
      }
      this.met.add(error.message);
    }
  }

  /** The sweep is over: what it did not meet was repaired, and is told of anew when it comes back. */
  swept(): void {
    [this.told, this.met] = [this.met, new Set()];
  }
}
