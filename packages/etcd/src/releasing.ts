/**
 * Release and cancel, for everything that a call names. A claim that this process never sent, as a person's forced
 * release names one, is looked for first.
 */
import type { Release, ReleaseAnswer } from '@guard/core';
import type { AcquireHost } from './acquiring.js';
import type { Own } from './claims.js';
import { readValue } from './lock-value.js';
import { entomb, isOwn, letGo } from './statements/release.js';
import { apart, found, oldest, together, type Answer, type Step } from './statements/txn.js';
import { underLiveLeases, type Tombstones } from './fading-leases.js';

/** One operation, and the steps it takes. */
interface Leaving {
  readonly release: Release;
  readonly steps: readonly Step[];
  /** What the step that deletes came to; whether there was something to delete. */
  readonly gone: (answer: Answer) => boolean;
  readonly done: () => void;
}

/** One call of release. */
export class Releasing {
  constructor(
    private readonly host: AcquireHost,
    private readonly tombstones: Tombstones,
  ) {}

  run(releases: readonly Release[]): Promise<readonly ReleaseAnswer[]> {
    return underLiveLeases([this.tombstones], () => this.send(releases));
  }

  private async send(releases: readonly Release[]): Promise<readonly ReleaseAnswer[]> {
    const leaving =
      this.prepareNow(releases) ?? (await Promise.all(releases.map((release) => this.prepare(release))));
    const steps = leaving.flatMap((one) => one.steps);
    try {
      if (steps.length === 0) return leaving.map(() => ({ status: 'lost' }));
      const { response, resent } = await this.host.connection.txn(together(steps));
      const answers = [...apart(response, steps.length)];
      return leaving.map((one) => this.answer(one, answers, resent));
    } finally {
      for (const { done } of leaving) done();
    }
  }

  private answer(one: Leaving, answers: Answer[], resent: boolean): ReleaseAnswer {
    const { release, steps, gone } = one;
    const isEntombed = leavesTombstone(release);
    const mine = answers.splice(0, steps.length);
    const deletes = mine.length > (isEntombed ? 1 : 0) ? mine.at(-1) : undefined;
    const wasThere = deletes !== undefined && gone(deletes);
    if (wasThere || isEntombed) return { status: 'released' };
    return resent ? { status: 'lost', resent } : { status: 'lost' };
  }

  /** Where all of it is known, as nearly always: a release then costs no promise. */
  private prepareNow(releases: readonly Release[]): Leaving[] | undefined {
    const owns = releases.map((release) => (leavesTombstone(release) ? undefined : this.ownOf(release)));
    if (owns.includes(undefined)) return undefined;
    return releases.map((release, n) => this.leaving(release, owns[n]!, []));
  }

  private async prepare(release: Release): Promise<Leaving> {
    const own = this.ownOf(release);
    const entombing = await this.entombing(release);
    if (own !== undefined) return this.leaving(release, own, entombing);
    const foreign = await this.foreign(release);
    return { release, steps: [...entombing, ...foreign.steps], gone: foreign.gone, done: () => undefined };
  }

  private leaving(release: Release, own: Own, before: readonly Step[]): Leaving {
    const leave = this.host.handOvers.leave(own);
    const gone = (answer: Answer): boolean => {
      const wasThere = this.host.handOvers.gone(own, leave, answer);
      this.host.claims.forget(own);
      return wasThere;
    };
    return { release, steps: [...before, leave.step], gone, done: leave.done };
  }

  /** The claim of this process that is meant; a release also names the very grant. */
  private ownOf(release: Release): Own | undefined {
    const own = this.host.claims.get(release.claim);
    if (own?.key !== release.key) return undefined;
    return release.cancel || own.created === release.token ? own : undefined;
  }

  private async entombing(release: Release): Promise<Step[]> {
    if (!leavesTombstone(release)) return [];
    const { lease, endsAt } = await this.tombstones.lease(release.tombstoneMs);
    return [entomb(this.host.connection.names.tombstone(release.claim), endsAt, lease)];
  }

  /** A claim of another process: its key is looked for among those of the lock. */
  private async foreign(release: Release): Promise<Pick<Leaving, 'steps' | 'gone'>> {
    const { connection, handOvers } = this.host;
    const lock = connection.names.lock(release.key);
    const { kvs } = await connection.range(oldest(lock, 0).request_range!);
    const key = kvs.find(({ value, create_revision }) => {
      if (readValue(value)?.claim !== release.claim) return false;
      return release.cancel || BigInt(create_revision) === release.token;
    });
    if (key === undefined) return { steps: [], gone: () => false };
    const created = BigInt(key.create_revision);
    const gone = (answer: Answer): boolean => {
      if (!answer.succeeded) return false;
      void this.host.sessions.take(1_000).then(
        ({ lease }) => handOvers.passedOn(release.key, created, found(answer.responses[1]), lease),
        () => undefined,
      );
      return true;
    };
    return { steps: [letGo(lock, key.key, isOwn(key.key, release.claim, created), true)], gone };
  }
}

function leavesTombstone(release: Release): release is Extract<Release, { readonly cancel: true }> {
  return release.cancel === true && release.tombstoneMs > 0;
}
