/**
 * Guard's tables as TypeORM entities, for applications that want to query them. Reading is what they are for: only
 * Guard's own statements know which changes are allowed.
 */
import { EntitySchema, type EntitySchemaColumnOptions, type EntitySchemaOptions } from 'typeorm';
import { invalidArgument } from '@guard/core';
import { entityOnMariadb } from './mariadb/entities.js';
import { checkTableOptions, tableNames, type TableOptions } from './tables.js';

/** Options of `guardEntities`. */
export interface EntityOptions extends TableOptions {
  /** The `type` of the data source: entities say how their columns are made. Default `'better-sqlite3'`. */
  readonly type?: 'better-sqlite3' | 'postgres' | 'mariadb' | 'mysql';
}

/** A run. `version`, `open` and `pruned` are Guard's own; `record` is the whole record as JSON. */
export interface RunRow {
  readonly seq: number | string;
  readonly namespace: string;
  readonly task: string;
  readonly runKey: string;
  readonly id: string;
  readonly version: number | string;
  readonly state: string;
  readonly open: number;
  readonly pruned: number;
  readonly attempt: number;
  readonly takeovers: number;
  readonly triggeredBy: string;
  readonly reason: string | null;
  readonly scheduledForMs: number | string | null;
  readonly availableAtMs: number | string | null;
  readonly createdAtMs: number | string;
  readonly startedAtMs: number | string | null;
  readonly finishedAtMs: number | string | null;
  readonly updatedAtMs: number | string;
  readonly lockBackend: string | null;
  readonly lockKey: string | null;
  readonly lockToken: string | null;
  readonly nodeId: string | null;
  readonly nodeLabel: string | null;
  readonly record: string;
}

/** A line of a run's history; `runSeq` is the `seq` of the run. */
export interface RunEventRow {
  readonly seq: number | string;
  readonly runSeq: number | string;
  readonly writeId: string;
  readonly atMs: number | string;
  readonly what: string;
  readonly fromState: string;
  readonly toState: string;
  readonly event: string;
}

/** What all nodes know about a task. */
export interface TaskRow {
  readonly seq: number | string;
  readonly namespace: string;
  readonly task: string;
  readonly version: number | string;
  readonly definition: string | null;
  readonly lowWaterMarkMs: number | string | null;
  readonly pausedNote: string | null;
  readonly pausedSinceMs: number | string | null;
  readonly lastSuccessMs: number | string | null;
  readonly record: string;
}

/**
 * A node that announced itself. It lives until `deadline`: on SQLite by the monotonic clock of its machine's `boot`, on
 * a server in milliseconds since the epoch by the server's clock.
 */
export interface NodeRow {
  readonly seq: number | string;
  readonly namespace: string;
  readonly id: string;
  readonly label: string;
  readonly startedAtMs: number | string;
  readonly boot: string;
  readonly since: number | string;
  readonly deadline: number | string;
  readonly record: string;
}

/** The largest token that wrote to a resource. */
export interface FenceRow {
  readonly resource: string;
  readonly token: number | string;
}

const TYPES: readonly string[] = ['better-sqlite3', 'postgres', 'mariadb', 'mysql'];

/** One entity for each table. */
export interface GuardEntities {
  readonly run: EntitySchema<RunRow>;
  readonly runEvent: EntitySchema<RunEventRow>;
  readonly task: EntitySchema<TaskRow>;
  readonly node: EntitySchema<NodeRow>;
  readonly fence: EntitySchema<FenceRow>;
}

/**
 * Guard's tables as entities. TypeORM puts the `entityPrefix` of the data source before their names, so it has to be
 * taken off the `prefix` here: tables of the prefix `app_guard_` are entities of the prefix `guard_` where it is `app_`.
 *
 * @throws GuardError `invalid-argument`: a bad option.
 *
 * @example
 * const guard = guardEntities();
 * const dataSource = new DataSource({ …, entities: [...Object.values(guard), …] });
 * await dataSource.getRepository(guard.run).findBy({ task: 'settlement', state: 'on-hold' });
 */
export function guardEntities(options: EntityOptions = {}): GuardEntities {
  checkTableOptions(options, ['type']);
  const { type = 'better-sqlite3', schema } = options;
  if (!TYPES.includes(type)) throw invalidArgument('type', type, `must be one of ${TYPES.join(', ')}`);
  if (schema !== undefined && type !== 'postgres') {
    throw invalidArgument('schema', schema, `must not be given for ${type}: only Postgres has schemas`);
  }
  const names = tableNames(options);
  const made = <T>(entity: EntitySchemaOptions<T>): EntitySchema<T> => {
    if (type === 'better-sqlite3') return new EntitySchema<T>(entity);
    return new EntitySchema<T>(type === 'postgres' ? onPostgres(entity, schema) : entityOnMariadb(entity));
  };
  return {
    run: made(runEntity(names.run)),
    runEvent: made<RunEventRow>({
      name: 'GuardRunEvent',
      tableName: names.runEvent,
      columns: {
        seq,
        ...columns('bigint', { runSeq: 'run_seq', atMs: 'at_ms' }),
        ...columns('text', {
          writeId: 'write_id',
          what: 'what',
          fromState: 'from_state',
          toState: 'to_state',
        }),
        ...columns('text', { event: 'event' }),
      },
      indices: [{ name: `${names.runEvent}_of_run`, columns: ['runSeq', 'seq'] }],
    }),
    task: made<TaskRow>({
      name: 'GuardTask',
      tableName: names.task,
      columns: {
        seq,
        ...columns('text', { namespace: 'namespace', task: 'task', record: 'record' }),
        ...columns('bigint', { version: 'version' }),
        ...nullable('text', { definition: 'definition', pausedNote: 'paused_note' }),
        ...nullable('bigint', { lowWaterMarkMs: 'low_water_mark_ms', pausedSinceMs: 'paused_since_ms' }),
        ...nullable('bigint', { lastSuccessMs: 'last_success_ms' }),
      },
      indices: [{ name: `${names.task}_name`, unique: true, columns: ['namespace', 'task'] }],
    }),
    node: made<NodeRow>({
      name: 'GuardNode',
      tableName: names.node,
      columns: {
        seq,
        ...columns('text', {
          namespace: 'namespace',
          id: 'id',
          label: 'label',
          boot: 'boot',
          record: 'record',
        }),
        ...columns('bigint', { startedAtMs: 'started_at_ms', since: 'since', deadline: 'deadline' }),
      },
      indices: [{ name: `${names.node}_id`, unique: true, columns: ['namespace', 'id'] }],
    }),
    fence: made<FenceRow>({
      name: 'GuardFence',
      tableName: names.fence,
      columns: {
        resource: { type: 'text', primary: true },
        ...columns('bigint', { token: 'token' }),
      },
    }),
  };
}

function runEntity(tableName: string): EntitySchemaOptions<RunRow> {
  return {
    name: 'GuardRun',
    tableName,
    columns: {
      seq,
      ...columns('text', {
        namespace: 'namespace',
        task: 'task',
        runKey: 'run_key',
        id: 'id',
        state: 'state',
      }),
      ...columns('text', { triggeredBy: 'triggered_by', record: 'record' }),
      ...columns('integer', { open: 'open', pruned: 'pruned', attempt: 'attempt', takeovers: 'takeovers' }),
      ...columns('bigint', {
        version: 'version',
        createdAtMs: 'created_at_ms',
        updatedAtMs: 'updated_at_ms',
      }),
      ...nullable('bigint', { scheduledForMs: 'scheduled_for_ms', availableAtMs: 'available_at_ms' }),
      ...nullable('bigint', { startedAtMs: 'started_at_ms', finishedAtMs: 'finished_at_ms' }),
      ...nullable('text', { reason: 'reason', lockBackend: 'lock_backend', lockKey: 'lock_key' }),
      ...nullable('text', { lockToken: 'lock_token', nodeId: 'node_id', nodeLabel: 'node_label' }),
    },
    indices: [
      { name: `${tableName}_key`, unique: true, columns: ['namespace', 'task', 'runKey'] },
      { name: `${tableName}_open`, columns: ['namespace', 'open', 'createdAtMs', 'seq'] },
      { name: `${tableName}_newest`, columns: ['namespace', 'createdAtMs', 'seq'] },
      { name: `${tableName}_newest_of_task`, columns: ['namespace', 'task', 'createdAtMs', 'seq'] },
      { name: `${tableName}_finished`, columns: ['namespace', 'pruned', 'finishedAtMs'] },
    ],
  };
}

type ColumnType = 'text' | 'integer' | 'bigint';

const seq = { type: 'integer', primary: true, generated: 'increment' } as const;

function columns<N extends string>(
  type: ColumnType,
  names: Record<N, string>,
): Record<N, EntitySchemaColumnOptions> {
  return columnsOf(names, { type });
}

function nullable<N extends string>(
  type: ColumnType,
  names: Record<N, string>,
): Record<N, EntitySchemaColumnOptions> {
  return columnsOf(names, { type, nullable: true });
}

function columnsOf<N extends string>(
  names: Record<N, string>,
  rest: EntitySchemaColumnOptions,
): Record<N, EntitySchemaColumnOptions> {
  const entries = Object.entries<string>(names).map(([property, name]) => [property, { name, ...rest }]);
  return Object.fromEntries(entries) as Record<N, EntitySchemaColumnOptions>;
}

/** Numbers of rows outgrow an `integer`, and texts are compared byte by byte whatever the locale of the database. */
function onPostgres<T>(entity: EntitySchemaOptions<T>, schema: string | undefined): EntitySchemaOptions<T> {
  const entries = Object.entries<EntitySchemaColumnOptions | undefined>(entity.columns);
  const made = entries.map(([property, column]) => {
    if (column === seq) return [property, { ...column, type: 'bigint' }];
    return [property, column?.type === 'text' ? { ...column, collation: 'C' } : column];
  });
  const columns = Object.fromEntries(made) as EntitySchemaOptions<T>['columns'];
  return { ...entity, columns, ...(schema === undefined ? {} : { schema }) };
}
