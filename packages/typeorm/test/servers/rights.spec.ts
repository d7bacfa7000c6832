/** What a user of a database server is told who may not do what Guard does: which right is missing, and where. */
import type { LockBackend } from '@guard/core';
import { ensureSchema, typeormLocks } from '@guard/typeorm';
import type { DataSource } from 'typeorm';
import { ask, claim, granted } from '../support/locking.js';
import { newDatabase, onMariadb } from '../support/mariadb.js';
import type { Place } from '../support/place-on-server.js';
import { newSchema, onPostgres } from '../support/postgres.js';

const postgres = onPostgres();
const mariadb = onMariadb();
let place: Place;
let owner: DataSource;
let user: string;
let theirs: DataSource;

afterEach(() => place.close());

/** What a claim is refused with. */
async function refusal(locks: LockBackend): Promise<unknown> {
  const answer = await ask(locks, claim());
  expect(answer.status).toBe('failed');
  return 'cause' in answer ? answer.cause : undefined;
}

const says = (...parts: readonly string[]): object => ({
  code: 'unavailable',
  message: expect.stringMatching(parts.join('.*')),
});

describe('a user of Postgres', () => {
  beforeEach(async () => {
    place = await newSchema(postgres.server.url);
    owner = await place.dataSource();
    user = `r${place.schema}`;
    await owner.query(`CREATE ROLE ${user} LOGIN`);
    theirs = await place.dataSource({ url: place.url.replace('guard:guard@', `${user}@`) });
  });
  const grant = (what: string): Promise<unknown> => owner.query(`GRANT ${what} TO ${user}`);

  it('[S6] without USAGE on the schema is told so, and not to run migrations', async () => {
    await ensureSchema(owner);
    await grant(`SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${place.schema}`);
    const usage = `grant it USAGE on the schema ${place.schema}`;
    expect(await refusal(typeormLocks(theirs))).toMatchObject(says(usage));
    const byPath = await place.dataSource({
      ...{ url: place.url.replace('guard:guard@', `${user}@`), schema: undefined! },
      extra: { options: `-c search_path=${place.schema}` },
    });
    expect(await refusal(typeormLocks(byPath))).toMatchObject({
      code: 'schema-missing',
      message: expect.stringContaining('or its user has no USAGE on their schema'),
    });
    await expect(ensureSchema(byPath)).rejects.toMatchObject(says('search path', `${user} may use`));
  });

  it('[S6] without rights to the tables is told which, and works once they are granted', async () => {
    await ensureSchema(owner);
    await grant(`USAGE ON SCHEMA ${place.schema}`);
    const locks = typeormLocks(theirs);
    expect(await refusal(locks)).toMatchObject(
      says('grant it SELECT, INSERT, UPDATE and DELETE', 'guard_lock'),
    );
    await grant(`SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${place.schema}`);
    await granted(locks);
  });

  it('[S6] without CREATE makes no tables and is told what is missing, and has nothing to make where they are', async () => {
    await expect(ensureSchema(theirs)).rejects.toMatchObject(
      says(`${user} has no USAGE and no CREATE on the schema ${place.schema}: grant it`),
    );
    await grant(`USAGE ON SCHEMA ${place.schema}`);
    await expect(ensureSchema(theirs)).rejects.toMatchObject(says(`${user} has no CREATE on the schema`));
    await ensureSchema(owner);
    await ensureSchema(theirs);
    await owner.query(`DROP INDEX "${place.schema}".guard_run_open`);
    await grant(`CREATE ON SCHEMA ${place.schema}`);
    await expect(ensureSchema(theirs)).rejects.toMatchObject(says('does not own those that are there'));
  });

  it('[S6] of a schema that is not there is told to create it', async () => {
    await expect(ensureSchema(owner, { schema: 'nowhere' })).rejects.toMatchObject(
      says('the schema nowhere is not there: create it first'),
    );
  });
});

describe('a user of MariaDB', () => {
  beforeEach(async () => {
    place = await newDatabase(mariadb.server.url);
    owner = await place.dataSource();
    user = place.schema.slice(0, 30);
    await owner.query(`CREATE USER ${user}@'%' IDENTIFIED BY 'x'`);
    await owner.query(`GRANT SELECT ON ${place.schema}.* TO ${user}@'%'`);
    const url = new URL(place.url);
    [url.username, url.password] = [user, 'x'];
    theirs = await place.dataSource({ url: url.href });
  });

  it('[S6] without CREATE makes no tables and is told what is missing, and has nothing to make where they are', async () => {
    const missing = says(`${user}@% has no CREATE on the database: grant it`);
    await expect(ensureSchema(theirs)).rejects.toMatchObject(missing);
    await ensureSchema(owner);
    await ensureSchema(theirs);
    await owner.query('DROP TABLE guard_fence');
    await expect(ensureSchema(theirs)).rejects.toMatchObject(missing);
  });

  it('[S6] without rights to the tables is told which, and works once they are granted', async () => {
    await ensureSchema(owner);
    const locks = typeormLocks(theirs);
    expect(await refusal(locks)).toMatchObject(
      says('grant it SELECT, INSERT, UPDATE and DELETE', 'guard_lock'),
    );
    await owner.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${place.schema}.* TO ${user}@'%'`);
    const url = (theirs.options as { readonly url: string }).url;
    await granted(typeormLocks(await place.dataSource({ url })));
  });
});
