/** Locks of one database server that differ in their tables, and what tells their fences apart. */
import { assertFence, ensureSchema } from '@guard/typeorm';
import { describePlaces, type PlaceParts, type PlaceStage } from './place-cases.js';

/** Cases for one database server, with those that are the same on every database. */
export function describeServerPlaces(database: string, parts: PlaceParts): PlaceStage {
  const stage = describePlaces(database, parts);

  describe(`locks in two sets of tables on ${database}`, () => {
    it('[S2] have a fence each: the tokens of one say nothing about a holder of the other', async () => {
      const dataSource = await stage.place.dataSource({});
      await ensureSchema(dataSource);
      await ensureSchema(dataSource, { prefix: 'x_' });
      await using older = await stage.guardOn(dataSource).acquire('account');
      await using newer = await stage.guardOn(dataSource, { prefix: 'x_' }).acquire('account');
      expect(newer.token).toBeGreaterThan(older.token);
      for (const lock of [newer, older]) {
        await dataSource.transaction((manager) => assertFence(manager, lock));
      }
      expect(await dataSource.query('SELECT resource FROM guard_fence')).toHaveLength(2);
    });
  });

  return stage;
}
