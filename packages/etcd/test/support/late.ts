/** A client whose transactions take their time: carried out late, or carried out in time and answered late. */
import type { Etcd3 } from 'etcd3';
import type { EtcdClient } from '../../src/index.js';

/** Lets what was held back go on. */
export type LetGo = () => void;

/** What is done to transactions. */
export interface LateClient {
  readonly client: EtcdClient;
  /** From now on transactions are carried out at once, and their answers come once they are let go. */
  holdAnswers(): LetGo;
  /** From now on transactions are carried out once they are let go. */
  holdRequests(): LetGo;
  /** From now on the transactions that come are as ever; what is held back stays so. */
  goOn(): void;
  /** What is held back by now is carried out, and its answer lost. */
  loseAnswers(): void;
  /** What is held back by now is not answered any more, and is carried out once it is let go. */
  giveUp(): void;
  /** How many transactions were held back. */
  readonly held: number;
}

/** What transactions wait at. */
interface Gate {
  readonly before: boolean;
  readonly open: Promise<void>;
  readonly givenUp: Promise<never>;
  readonly giveUp: () => void;
  lost: boolean;
}

export function lateClient(real: Etcd3): LateClient {
  let gate: Gate | undefined;
  let held = 0;
  const hold = (before: boolean): LetGo => {
    let letGo: LetGo = () => undefined;
    let giveUp: Gate['giveUp'] = () => undefined;
    const open = new Promise<void>((resolve) => (letGo = resolve));
    const givenUp = new Promise<never>((_, reject) => (giveUp = () => reject(new Error('no answer'))));
    givenUp.catch(() => undefined);
    gate = { before, lost: false, open, givenUp, giveUp };
    return letGo;
  };
  const txn: EtcdClient['kv']['txn'] = async (request, options) => {
    const mine = gate;
    held += mine === undefined ? 0 : 1;
    if (mine === undefined) return real.kv.txn(request, options);
    const carriedOut = mine.before
      ? mine.open.then(() => real.kv.txn(request))
      : real.kv.txn(request, options);
    const response = await Promise.race([carriedOut, mine.givenUp]);
    await mine.open;
    if (mine.lost) throw new Error('the answer was lost');
    return response;
  };
  const { prefix, leaseClient, watchClient } = real;
  const kv = { range: real.kv.range.bind(real.kv), txn } as unknown as EtcdClient['kv'];
  return {
    client: { prefix, leaseClient, watchClient, kv },
    holdAnswers: () => hold(false),
    holdRequests: () => hold(true),
    giveUp: () => gate?.giveUp(),
    goOn: () => void (gate = undefined),
    loseAnswers: () => {
      if (gate !== undefined) gate.lost = true;
    },
    get held() {
      return held;
    },
  };
}
