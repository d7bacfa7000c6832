// A CommonJS application on SQLite, through TypeORM.
const assert = require('node:assert/strict');
const { mkdtempSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { createGuard } = require('@guard/core');
const typeorm = require('@guard/typeorm');
const { DataSource } = require('typeorm');

async function main(folder) {
  const db = await new DataSource({
    type: 'better-sqlite3',
    database: join(folder, 'app.sqlite'),
    migrations: [...typeorm.guardMigrations()],
    migrationsRun: true,
  }).initialize();
  await db.query('CREATE TABLE booking (day text)');
  const guard = createGuard({
    locks: typeorm.typeormLocks(db),
    state: typeorm.typeormState(db),
    runs: typeorm.typeormRuns(db),
  });
  const settle = () =>
    guard.run('settle', { key: '2026-11-29' }, () =>
      db.transaction(async (manager) => {
        await manager.query('INSERT INTO booking VALUES (?)', ['2026-11-29']);
        await typeorm.completeRun(manager);
      }),
    );
  await settle();
  await settle();
  assert.deepEqual(await db.query('SELECT day FROM booking'), [{ day: '2026-11-29' }]);
  await guard.close();
  await db.destroy();
  console.log('came to its end');
}

const folder = mkdtempSync(join(tmpdir(), 'guard-consumer-'));
main(folder).finally(() => rmSync(folder, { recursive: true, force: true }));
