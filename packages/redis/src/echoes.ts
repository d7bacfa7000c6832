/**
 * Signs of life of a cluster's messages. Every member hands a message on to all others, over connections between them
 * that no client sees: one that was cut off, or taken out of the cluster, answers well and tells nothing any more. So
 * each master is asked to say something, and it has to come in.
 */
import { systemClock, systemRandom } from '@guard/core';

/** Says something on a channel, by one master. */
export type Say = (channel: string, text: string) => Promise<unknown>;

/** A master that takes longer is in trouble itself, and nothing is known of the way from there. */
const SAID_WITHIN_MS = 2_000;

/** What one connection for messages hears of itself. */
export class Echoes {
  readonly channel = `guard:echo:${systemRandom.id()}`;
  private readonly awaited = new Map<string, () => void>();
  private asked = 0;

  /** A message came in. `true`: it was an echo. */
  heard(channel: string, text: string): boolean {
    if (channel !== this.channel) return false;
    this.awaited.get(text)?.();
    return true;
  }

  /** Resolves when everything came in that was said. A master that says nothing is passed over. */
  async ask(masters: readonly Say[]): Promise<void> {
    await Promise.all(masters.map((say) => this.askOne(say)));
  }

  private async askOne(say: Say): Promise<void> {
    const text = String((this.asked += 1));
    const came = new Promise<void>((resolve) => this.awaited.set(text, resolve));
    try {
      if (await this.isSaid(say, text)) await came;
    } finally {
      this.awaited.delete(text);
    }
  }

  private isSaid(say: Say, text: string): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = systemClock.setTimer(() => resolve(false), SAID_WITHIN_MS, { ref: false });
      const said = (isSaid: boolean) => (): void => {
        timer.cancel();
        resolve(isSaid);
      };
      say(this.channel, text).then(said(true), said(false));
    });
  }
}
