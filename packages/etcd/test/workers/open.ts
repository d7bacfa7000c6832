/** Opens an etcd for the programs of an application. */
import { kvRuns } from '@guard/core';
import { Etcd3 } from 'etcd3';
import type { Opener } from '../../../../test/support/programs/opener.js';
import { etcdLocks, etcdState } from '../../src/index.js';

export interface EtcdPlace {
  readonly urls: readonly string[];
}

const open: Opener<EtcdPlace> = async ({ urls }) => {
  const client = new Etcd3({ hosts: [...urls] });
  const [locks, state] = [etcdLocks(client), etcdState(client)];
  return {
    ...{ locks, runs: kvRuns(state) },
    close: async () => {
      await Promise.all([locks.close(), state.close()]);
      client.close();
    },
  };
};
export default open;
