/**
 * Guard's entities for MariaDB: with lengths, where a column has an index, and compared byte by byte. They are what the
 * tables in `statements/mariadb-tables.ts` are, so TypeORM finds nothing to change.
 */
import type { EntitySchemaColumnOptions, EntitySchemaOptions } from 'typeorm';

/** Texts with a limit, by their column; all others have none. */
const LENGTHS: Readonly<Record<string, number>> = {
  ...{ namespace: 64, task: 512, run_key: 512, id: 255, state: 20, triggered_by: 255, lock_token: 255 },
  ...{ node_id: 255, write_id: 255, what: 255, from_state: 20, to_state: 20, boot: 255 },
};

const COMPARED = { charset: 'utf8mb4', collation: 'utf8mb4_nopad_bin' };

/** A key of bytes, as the text that it is. */
const RESOURCE: EntitySchemaColumnOptions = {
  ...{ type: 'varbinary', length: 3_000, primary: true },
  transformer: {
    to: (text: string) => Buffer.from(text, 'utf8'),
    from: (bytes: Buffer) => bytes.toString('utf8'),
  },
};

/** The entity of a table, as MariaDB has it. */
export function entityOnMariadb<T>(entity: EntitySchemaOptions<T>): EntitySchemaOptions<T> {
  const entries = Object.entries<EntitySchemaColumnOptions | undefined>(entity.columns).map(
    ([property, column]) => [property, column === undefined ? column : columnOf(property, column)],
  );
  const columns = Object.fromEntries(entries) as EntitySchemaOptions<T>['columns'];
  if (entity.name !== 'GuardRun') return { ...entity, columns };
  // Three names are too long for an index: their hash stands for them.
  const identity: EntitySchemaColumnOptions = { type: 'binary', length: 32, select: false };
  const [, ...indices] = entity.indices ?? [];
  const key = { name: `${entity.tableName}_key`, unique: true, columns: ['identity'] };
  return { ...entity, columns: { ...columns, identity }, indices: [key, ...indices] };
}

function columnOf(property: string, column: EntitySchemaColumnOptions): EntitySchemaColumnOptions {
  const { type, name = property, primary } = column;
  if (name === 'resource') return RESOURCE;
  if (primary === true) return { ...column, type: 'bigint' };
  if (type === 'integer') return { ...column, type: 'int' };
  if (type !== 'text') return column;
  const length = LENGTHS[name];
  return length === undefined
    ? { ...column, type: 'longtext', ...COMPARED }
    : { ...column, type: 'varchar', length, ...COMPARED };
}
