/** Whole programs on one etcd. */
import { join } from 'node:path';
import { describePrograms } from '../../../../test/support/programs/describe-programs.js';
import { server, stopServer } from '../support/place.js';
import type { EtcdPlace } from '../workers/open.js';

jest.setTimeout(90_000);

afterAll(stopServer);

/** Its members stand still, and nobody is told. */
async function standStill(): Promise<() => Promise<void>> {
  const members = await server();
  await members.pause();
  return () => members.resume();
}

describePrograms('etcd', {
  opener: join(__dirname, '../workers/open.ts'),
  newPlace: async () => {
    const { urls } = await server();
    return { place: { urls } satisfies EtcdPlace, remove: async () => undefined };
  },
  away: standStill,
  breakages: [{ what: 'the server answers nothing', code: 'unavailable', begin: standStill }],
});
