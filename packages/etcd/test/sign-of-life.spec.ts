/** What is made of the signs of life of a stream, on a virtual clock: members that no test can cut off from the others. */
import { VirtualClock } from '@guard/testing';
import { SignOfLife } from '../src/sign-of-life.js';

function stage() {
  const clock = new VirtualClock();
  const told = { asked: 0, compared: 0, dead: [] as string[] };
  const cluster: { revision: bigint; member: bigint; answers: boolean } = {
    ...{ revision: 1n, member: 1n, answers: true },
  };
  const life = new SignOfLife(clock, {
    ask: () => {
      told.asked += 1;
      if (cluster.answers) life.heard(cluster.member);
    },
    revision: async () => {
      told.compared += 1;
      return cluster.revision;
    },
    dead: ({ message }) => {
      told.dead.push(message);
      life.stop();
    },
    tick: () => undefined,
  });
  life.start();
  return { clock, told, cluster, life };
}

test('a member that answers and keeps up is left alone, at a question every three seconds', async () => {
  const { clock, told, cluster } = stage();
  for (let second = 0; second < 60; second += 1) {
    cluster.revision += 10n;
    cluster.member = cluster.revision;
    await clock.advance(1_000);
  }
  expect(told).toEqual({ asked: 20, compared: 5, dead: [] });
});

test('[L3] a member that says nothing is left after six seconds', async () => {
  const { clock, told, cluster } = stage();
  await clock.advance(3_500);
  cluster.answers = false;
  await clock.advance(5_000);
  expect(told.dead).toEqual([]);
  await clock.advance(1_000);
  expect(told.dead).toEqual([expect.stringMatching(/no answer/)]);
});

test('[L3] a member that is cut off from the others answers, and is left within 18 seconds of what it misses', async () => {
  const { clock, told, cluster } = stage();
  await clock.advance(30_000);
  expect(told.dead).toEqual([]);
  cluster.revision += 1n;
  await clock.advance(18_000);
  expect(told.dead).toEqual([expect.stringMatching(/left behind/)]);
});

test('a process that was stopped reads what came meanwhile before it judges', async () => {
  const { clock, told, cluster, life } = stage();
  cluster.answers = false;
  await clock.advance(3_000);
  clock.block(10_000);
  await clock.advance(100);
  expect(told.dead).toEqual([]);
  life.heard(1n);
  cluster.answers = true;
  await clock.advance(6_000);
  expect(told.dead).toEqual([]);
});
