/** Opens a file for the programs of an application. */
import { typeormLocks, typeormRuns } from '@guard/typeorm';
import { DataSource } from 'typeorm';
import type { Opener } from '../../../../test/support/programs/opener.js';

export interface SqlitePlace {
  readonly file: string;
  /** Where it is, and nothing else. */
  readonly folder: string;
}

const open: Opener<SqlitePlace> = async ({ file }) => {
  const dataSource = new DataSource({ type: 'better-sqlite3', database: file });
  const locks = typeormLocks(dataSource);
  return {
    ...{ locks, runs: typeormRuns(dataSource) },
    close: async () => {
      await locks.close();
      if (dataSource.isInitialized) await dataSource.destroy();
    },
  };
};
export default open;
