/**
 * Saves an entity of the application only over the version that it was loaded with. TypeORM raises a `@VersionColumn`
 * on every save, and compares it on none: of two who load and save, the second silently undoes the first.
 */
import { isDeepStrictEqual } from 'node:util';
import { GuardError, invalidArgument } from '@guard/core';
import type { DataSource, EntityManager, EntityMetadata, ObjectLiteral } from 'typeorm';

type Column = EntityMetadata['columns'][number];
type Relation = EntityMetadata['relations'][number];

/**
 * Writes what was changed of a loaded entity if its row still has the entity's version. A read of the row says what was
 * changed, and one statement writes that, in the transaction of the manager if it has one. The version is raised also
 * where nothing was changed. Relations are written where this entity has their column; nothing cascades, and no
 * listener or subscriber is called. Where a relation and a property of yours share a column, the one that was changed
 * is written, as `save()` does it.
 *
 * @returns `true`: written, and the entity has its new version. `false`: somebody was faster, or the row is gone; the
 * entity is as it was: load it again.
 * @throws GuardError `invalid-argument`: not an entity of this manager with a primary key and a numeric
 * `@VersionColumn`, or one that was never loaded, or one of a tree with its parent (only `save()` keeps the paths of a
 * tree); `unavailable`: the driver does not say how many rows it changed.
 */
export async function compareAndSave(manager: EntityManager, entity: ObjectLiteral): Promise<boolean> {
  const { dataSource, metadata } = knownTo(manager, entity);
  const { versionColumn } = metadata;
  if (versionColumn === undefined) {
    throw invalidArgument('entity', metadata.name, 'must be of an entity with a @VersionColumn');
  }
  const version: unknown = versionColumn.getEntityValue(entity);
  if (typeof version !== 'number' || !Number.isSafeInteger(version) || !hasIdentity(entity, metadata)) {
    throw invalidArgument(
      'entity',
      metadata.name,
      'must have been loaded: it has no version that is a whole number, or no primary key',
    );
  }
  // A lazy relation that was set has its value a moment later.
  await Promise.resolve();
  refuseParents(entity, metadata);
  const row = { ...metadata.getEntityIdMap(entity), ...versionColumn.createValueMap(version) };
  const { affected } = await manager
    .createQueryBuilder()
    .update(metadata.target)
    .set(await changesOf(entity, metadata, (columns) => stored(manager, dataSource, metadata, columns, row)))
    .where(row)
    .callListeners(false)
    .execute();
  if (typeof affected !== 'number') {
    throw new GuardError(
      'unavailable',
      `the driver does not say how many rows of ${metadata.name} it changed`,
    );
  }
  if (affected === 1) versionColumn.setEntityValue(entity, version + 1);
  return affected === 1;
}

function knownTo(
  manager: EntityManager,
  entity: ObjectLiteral,
): { readonly dataSource: DataSource; readonly metadata: EntityMetadata } {
  // Up to TypeORM 0.3 it is called connection.
  const dataSource =
    (manager as Partial<Pick<EntityManager, 'dataSource'>> | undefined)?.dataSource ?? manager?.connection;
  const target = typeof entity === 'object' && entity !== null ? entity.constructor : undefined;
  if (target === undefined || dataSource?.hasMetadata(target) !== true) {
    throw invalidArgument('entity', entity, "must be an instance of an entity of the manager's data source");
  }
  return { dataSource, metadata: dataSource.getMetadata(target) };
}

/** Where a tree keeps paths, more than one row is written when a parent changes, and not always by a version. */
function refuseParents(
  entity: ObjectLiteral,
  { name, treeType, treeParentRelation: parent }: EntityMetadata,
): void {
  if (treeType === undefined || treeType === 'adjacency-list') return;
  if (parent?.getEntityValue(entity) === undefined) return;
  throw invalidArgument(
    'entity',
    name,
    'must be loaded without its parent: only save() keeps the paths of a tree',
  );
}

/** TypeORM takes a part of a key for the whole, and no key for one that no row has. */
function hasIdentity(entity: ObjectLiteral, { primaryColumns }: EntityMetadata): boolean {
  return primaryColumns.every((column) => {
    const value: unknown = column.getEntityValue(entity);
    return value !== undefined && value !== null && !Number.isNaN(value);
  });
}

/** The columns of the row as they are, without listeners; `undefined`: it is gone, or has another version. */
async function stored(
  manager: EntityManager,
  dataSource: DataSource,
  { target, primaryColumns }: EntityMetadata,
  columns: readonly Column[],
  row: ObjectLiteral,
): Promise<ObjectLiteral | undefined> {
  const select: ObjectLiteral = {};
  for (const column of [...primaryColumns, ...columns]) {
    merge(select, column.createValueMap(true));
  }
  // A replica may be behind.
  const runner = manager.queryRunner ?? dataSource.createQueryRunner('master');
  try {
    const there = await dataSource
      .createQueryBuilder(target, 'saved', runner)
      .setFindOptions({ select, where: row, loadEagerRelations: false, withDeleted: true })
      .callListeners(false)
      .getOne();
    return there ?? undefined;
  } finally {
    if (runner !== manager.queryRunner) await runner.release();
  }
}

type Read = (columns: readonly Column[]) => Promise<ObjectLiteral | undefined>;

/** What the application may have changed. TypeORM raises the version and the date of the update by itself. */
async function changesOf(
  entity: ObjectLiteral,
  metadata: EntityMetadata,
  read: Read,
): Promise<ObjectLiteral> {
  const values: ObjectLiteral = {};
  const columns = metadata.columns.filter(
    (column) => isWritten(column) && column.getEntityValue(entity) !== undefined,
  );
  const shared = metadata.relationsWithJoinColumns.flatMap(({ joinColumns }) => joinColumns);
  const there = await read([...columns, ...shared.filter(({ isVirtual }) => !isVirtual)]);
  // A lazy relation may have come meanwhile.
  refuseParents(entity, metadata);
  for (const column of columns) {
    const value: unknown = column.getEntityValue(entity);
    // What a program reads may be less than what is stored: a date without its microseconds, a number of JSON.
    const isChanged = there === undefined || !isSame(value, column.getEntityValue(there));
    if (isChanged) merge(values, column.createValueMap(value));
  }
  for (const relation of metadata.relationsWithJoinColumns) {
    const related = relation.getEntityValue(entity) as unknown;
    if (related === undefined || relation.persistenceEnabled === false) continue;
    if (relation.joinColumns.every(({ isPrimary }) => isPrimary)) continue;
    if (relation.joinColumns.some(({ isVirtual }) => isVirtual)) {
      // An entity that has no key yet is written by nobody, and changes nothing.
      const id: unknown = isEntity(related) ? relation.getRelationIdMap(related) : related;
      if (id !== undefined) merge(values, relation.createValueMap(id) as ObjectLiteral);
    } else if (!isEntity(related)) {
      merge(values, unrelated(entity, relation, related, there));
    }
  }
  return values;
}

/** The values of a relation's columns that are properties too, where it names no entity: it is `null`, or a key. */
function unrelated(
  entity: ObjectLiteral,
  { joinColumns }: Relation,
  related: unknown,
  stored: ObjectLiteral | undefined,
): ObjectLiteral {
  const values: ObjectLiteral = {};
  const columns = joinColumns.filter(isWritten);
  const disagree = columns.some((column) => {
    const own: unknown = column.getEntityValue(entity);
    return own !== undefined && !isSame(own, related);
  });
  const there = disagree ? stored : undefined;
  const before = joinColumns.map((column): unknown => there && column.getEntityValue(there));
  // A relation of which the row has a part only is none, and stays so.
  if (related === null && there !== undefined && before.includes(null)) return values;
  for (const column of columns) {
    const own: unknown = column.getEntityValue(entity);
    const isChanged = there !== undefined && own !== undefined && !isSame(own, column.getEntityValue(there));
    if (!isChanged) merge(values, column.createValueMap(related));
  }
  return values;
}

/** What names an entity by its key, and is no key itself. */
function isEntity(related: unknown): related is ObjectLiteral {
  return (
    typeof related === 'object' &&
    related !== null &&
    !(related instanceof Date) &&
    !(related instanceof Uint8Array)
  );
}

/** Drivers answer some numbers as text. */
function isSame(one: unknown, other: unknown): boolean {
  if (typeof one === 'number' && typeof other === 'string') return String(one) === other;
  if (typeof one === 'string' && typeof other === 'number') return one === String(other);
  return isDeepStrictEqual(one, other);
}

function isWritten({
  isPrimary,
  isVersion,
  isDiscriminator,
  isCreateDate,
  isUpdateDate,
  isUpdate,
  isVirtual,
  isVirtualProperty,
}: Column): boolean {
  // The columns of a relation that are no properties are virtual, and it is the relation that is written.
  return ![
    ...[isPrimary, isVersion, isDiscriminator, isCreateDate, isUpdateDate],
    ...[!isUpdate, isVirtual, isVirtualProperty],
  ].includes(true);
}

/** Adds the values of an embedded entity to those that are there. */
function merge(into: ObjectLiteral, more: ObjectLiteral): void {
  for (const [name, value] of Object.entries(more)) {
    const there: unknown = into[name];
    if (isPlain(there) && isPlain(value)) merge(there, value);
    else into[name] = value as unknown;
  }
}

function isPlain(value: unknown): value is ObjectLiteral {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
