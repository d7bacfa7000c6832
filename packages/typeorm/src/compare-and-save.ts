/**
 * Saves an entity of the application only over the version that it was loaded with. TypeORM raises a `@VersionColumn`
 * on every save, and compares it on none: of two who load and save, the second silently undoes the first.
 */
import { GuardError, invalidArgument } from '@guard/core';
import type { EntityManager, EntityMetadata, ObjectLiteral } from 'typeorm';

type Column = EntityMetadata['columns'][number];

/**
 * Writes the columns of a loaded entity if its row still has the entity's version. One statement, in the transaction of
 * the manager if it has one. Relations are written where this entity has their column; nothing cascades, and no
 * listener or subscriber is called.
 *
 * @returns `true`: written, and the entity has its new version. `false`: somebody was faster, or the row is gone; the
 * entity is as it was: load it again.
 * @throws GuardError `invalid-argument`: not an entity of this manager with a primary key and a numeric
 * `@VersionColumn`, or one that was never loaded; `unavailable`: the driver does not say how many rows it changed.
 */
export async function compareAndSave(manager: EntityManager, entity: ObjectLiteral): Promise<boolean> {
  const metadata = metadataOf(manager, entity);
  const { versionColumn } = metadata;
  if (versionColumn === undefined) {
    throw invalidArgument('entity', metadata.name, 'must be of an entity with a @VersionColumn');
  }
  const version: unknown = versionColumn.getEntityValue(entity);
  const id = metadata.getEntityIdMap(entity);
  if (typeof version !== 'number' || id === undefined) {
    throw invalidArgument(
      'entity',
      metadata.name,
      'must have been loaded: it has no version or no primary key',
    );
  }
  const { affected } = await manager
    .createQueryBuilder()
    .update(metadata.target)
    .set(valuesOf(entity, metadata))
    .where({ ...id, ...versionColumn.createValueMap(version) })
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

function metadataOf(manager: EntityManager, entity: ObjectLiteral): EntityMetadata {
  // Up to TypeORM 0.3 it is called connection.
  const dataSource =
    (manager as Partial<Pick<EntityManager, 'dataSource'>> | undefined)?.dataSource ?? manager?.connection;
  const target = typeof entity === 'object' && entity !== null ? entity.constructor : undefined;
  if (target === undefined || dataSource?.hasMetadata(target) !== true) {
    throw invalidArgument('entity', entity, "must be an instance of an entity of the manager's data source");
  }
  return dataSource.getMetadata(target);
}

/** What the application may have changed. TypeORM raises the version and the date of the update by itself. */
function valuesOf(entity: ObjectLiteral, metadata: EntityMetadata): ObjectLiteral {
  const values: ObjectLiteral = {};
  for (const column of metadata.columns) {
    if (!isWritten(column)) continue;
    const value: unknown = column.getEntityValue(entity);
    if (value !== undefined) merge(values, column.createValueMap(value));
  }
  return values;
}

function isWritten(column: Column): boolean {
  const { isPrimary, isVersion, isCreateDate, isUpdateDate, isUpdate, isVirtual, isVirtualProperty } = column;
  if (isPrimary || isVersion || isCreateDate || isUpdateDate || !isUpdate || isVirtualProperty) return false;
  // The column of a relation is virtual, and it is the relation that is written.
  return !isVirtual || column.relationMetadata !== undefined;
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
