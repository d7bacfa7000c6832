/** What an answer that was lost on its way from a database server leaves behind: the same on every server. */
import { startTcpProxy } from '@guard/testing';
import { typeormLocks, typeormRuns, typeormState } from '@guard/typeorm';
import { ask, claim, release } from './locking.js';
import type { Place } from './place-on-server.js';
import { created, line, NAMESPACE, record } from './running.js';

/** Describes it for a place in which the tables are. */
export function describeLostAnswers(database: string, placeOf: () => Place): void {
  describe(`an answer that was lost on its way from ${database}`, () => {
    const opened: (() => Promise<unknown>)[] = [];
    afterEach(async () => {
      for (const close of opened.splice(0)) await close();
    });

    /** The stores behind a line on which a test can lose what the server says. */
    async function behindProxy() {
      const { hostname, port } = new URL(placeOf().url);
      const proxy = await startTcpProxy({ target: { host: hostname, port: Number(port) } });
      opened.push(() => proxy.close());
      const url = new URL(placeOf().url);
      [url.hostname, url.port] = [proxy.host, String(proxy.port)];
      const source = await placeOf().dataSource({ url: String(url), poolSize: 1 });
      return { proxy, source };
    }

    it('[S4] [V29] [B94] is settled by sending again: the claim, the write and the run know themselves', async () => {
      const { proxy, source } = await behindProxy();
      const [locks, state, runs] = [typeormLocks(source), typeormState(source), typeormRuns(source)];
      await source.query('SELECT 1');
      const wanted = claim({ ttlMs: 30_000 });
      const write = { key: 's/k', value: '1', expect: 'absent', writeId: 'the write', ttl: 'none' } as const;
      const [run, event] = [record('k'), line('created')];
      /** Loses the answer to the request with these words in it: the one that carries the change, and no other. */
      const lost = async <T>(words: string, work: () => Promise<T>): Promise<T> => {
        const loss = proxy.loseReply({ then: 'reset', matches: (request) => request.includes(words) });
        const answer = await work();
        await loss.happened;
        return answer;
      };
      expect(await lost(wanted.id, () => ask(locks, wanted))).toMatchObject({ status: 'failed' });
      const answer = await ask(locks, wanted);
      expect(answer).toMatchObject({ status: 'granted' });
      expect(await lost(write.writeId, () => state.write([write]))).toMatchObject([{ status: 'failed' }]);
      expect(await state.write([write])).toMatchObject([{ status: 'written' }]);
      expect(await lost(event.writeId, () => runs.create(NAMESPACE, run, event))).toMatchObject({
        status: 'failed',
      });
      const stored = await created(runs, run, event);
      const move = line('completed', { from: 'pending', to: 'completed' });
      const done = { ...run, state: 'completed', finishedAtMs: 5 } as typeof run;
      const moving = () => runs.transition(NAMESPACE, stored.version, done, move);
      expect(await lost(move.writeId, moving)).toMatchObject({ status: 'failed' });
      expect(await moving()).toMatchObject({ status: 'moved' });
      expect(await runs.events(NAMESPACE, run)).toHaveLength(2);
      const { token } = answer as { readonly token: bigint };
      const lease = { key: wanted.key, claim: wanted.id, session: wanted.session, token };
      expect(await release(locks, lease)).toBe('released');
    });
  });
}
