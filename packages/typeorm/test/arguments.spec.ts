import { DataSource } from 'typeorm';
import { typeormLocks, typeormRuns, typeormState } from '../src/index.js';

const code = expect.objectContaining({ code: 'invalid-argument' });
const db = new DataSource({ type: 'better-sqlite3', database: 'never-opened.sqlite' });
const factories = [typeormLocks, typeormState, typeormRuns] as unknown as ((...args: unknown[]) => unknown)[];

describe('what is no data source, and options that do not exist', () => {
  it('are refused before any file is opened', () => {
    for (const factory of factories) {
      for (const source of [undefined, null, 5, {}]) expect(() => factory(source)).toThrow(code);
      for (const options of [null, 5, { unknown: 1 }]) expect(() => factory(db, options)).toThrow(code);
    }
    expect(() => typeormRuns(db, { prefix: 'a"b' })).toThrow(code);
  });
});
