/**
 * Release and cancel, for everything that a call names. A claim that this process never sent, as a person's forced
 * release names one, is looked for first.
 */
import type { Release, ReleaseAnswer } from '@guard/core';
import type { AcquireHost } from './acquiring.js';
import { isOvertaken, type Own } from './claims.js';
import { isOutOfSpace } from './connection.js';
import { readValue } from './lock-value.js';
import { entomb, isOwn, letGo } from './statements/release.js';
import { apart, found, oldest, together, type Answer, type Step } from './statements/txn.js';
import { underLiveLeases, type Tombstones } from './fading-leases.js';

/** One operation, and the steps it takes. */
interface Leaving {
  readonly release: Release;
  readonly steps: readonly Step[];
  /** Whether the last step deletes. */
  readonly deletes: boolean;
  /** What that step came to; whether there was something to delete. */
  readonly gone: (answer: Answer, revision: bigint) => boolean;
  readonly done: () => void;
}

/** How a sending went. */
interface Sending {
  readonly revision: bigint;
  readonly resent: boolean;
  readonly refused: Error | undefined;
}

/** One call of release. */
export class Releasing {
  constructor(
    private readonly host: AcquireHost,
    private readonly tombstones: Tombstones,
  ) {}

  run(releases: readonly Release[]): Promise<readonly ReleaseAnswer[]> {
    return underLiveLeases([this.tombstones], async () => {
      try {
        return await this.send(releases, undefined);
      } catch (cause) {
        if (!isOutOfSpace(cause)) throw cause;
        return this.send(releases, cause);
      }
    });
  }

  /** `refused`: the server has no space, so nothing is put along: no notice, and no tombstone. */
  private async send(
    releases: readonly Release[],
    refused: Error | undefined,
  ): Promise<readonly ReleaseAnswer[]> {
    const leaving = this.prepareNow(releases, refused) ?? (await this.prepareAll(releases, refused));
    const steps = leaving.flatMap((one) => one.steps);
    try {
      if (steps.length === 0) return leaving.map(({ release }) => notThere(release, refused));
      const { response, resent } = await this.host.connection.txn(together(steps));
      const answers = [...apart(response, steps.length)];
      const revision = BigInt(response.header.revision);
      return leaving.map((one) => this.answer(one, answers, { revision, resent, refused }));
    } finally {
      for (const { done } of leaving) done();
    }
  }

  private answer(
    { release, steps, deletes, gone }: Leaving,
    answers: Answer[],
    { revision, resent, refused }: Sending,
  ): ReleaseAnswer {
    const mine = answers.splice(0, steps.length);
    const wasThere = deletes && gone(mine.at(-1)!, revision);
    if (leavesTombstone(release)) {
      return refused === undefined ? { status: 'released' } : { status: 'failed', cause: refused };
    }
    if (wasThere) return { status: 'released' };
    // A cluster that is younger than the grant forgot it: no sending has given that back.
    const isForgotten = !release.cancel && revision < release.token;
    return resent && !isForgotten ? { status: 'lost', resent } : { status: 'lost' };
  }

  /** Where all of it is known, as nearly always: a release then costs no promise. */
  private prepareNow(releases: readonly Release[], refused: Error | undefined): Leaving[] | undefined {
    const owns = releases.map((release) => (leavesTombstone(release) ? undefined : this.ownOf(release)));
    if (owns.includes(undefined)) return undefined;
    return releases.map((release, n) => this.leaving(release, owns[n]!, [], refused));
  }

  /** Where one cannot be got ready, nothing is sent, and the names of notices are free again. */
  private async prepareAll(releases: readonly Release[], refused: Error | undefined): Promise<Leaving[]> {
    const preparing = releases.map((release) => this.prepare(release, refused));
    const leaving: Leaving[] = [];
    for (const one of await Promise.allSettled(preparing))
      if (one.status === 'fulfilled') leaving.push(one.value);
    if (leaving.length < releases.length) for (const { done } of leaving) done();
    return Promise.all(preparing);
  }

  private async prepare(release: Release, refused: Error | undefined): Promise<Leaving> {
    const own = this.ownOf(release);
    const entombing = refused === undefined ? await this.entombing(release) : [];
    if (own !== undefined) return this.leaving(release, own, entombing, refused);
    const foreign = await this.foreign(release);
    const steps = [...entombing, ...foreign.steps];
    return { release, steps, deletes: foreign.steps.length > 0, gone: foreign.gone, done: () => undefined };
  }

  private leaving(release: Release, own: Own, before: readonly Step[], refused: Error | undefined): Leaving {
    const { handOvers, claims } = this.host;
    const leave = handOvers.leave(own, release.cancel === true, refused !== undefined);
    const known = own.seen;
    // What was asked before this makes nothing that anybody wants.
    own.ends += 1;
    const gone = (answer: Answer, revision: bigint): boolean => {
      const wasThere = handOvers.gone(own, leave, answer);
      // Its claim may have been asked for and answered anew.
      const isNewer = !release.cancel && own.created !== undefined && own.created !== release.token;
      if (!isNewer && !isOvertaken(own, known, revision)) claims.forget(own);
      return wasThere;
    };
    return { release, steps: [...before, leave.step], deletes: true, gone, done: leave.done };
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

/** There is no step for it. */
function notThere(release: Release, refused: Error | undefined): ReleaseAnswer {
  return refused !== undefined && leavesTombstone(release)
    ? { status: 'failed', cause: refused }
    : { status: 'lost' };
}

function leavesTombstone(release: Release): release is Extract<Release, { readonly cancel: true }> {
  return release.cancel === true && release.tombstoneMs > 0;
}
