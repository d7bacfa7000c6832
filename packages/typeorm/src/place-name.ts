/**
 * What a place is called. Fences, records of runs and nodes compare places by these names, so two stores have one name
 * exactly where they have the same tables.
 */
/** Where tables are unless somebody says otherwise: named or not, it is the same place. */
const STANDARD_SCHEMA = 'public';
const STANDARD_PREFIX = 'guard_';

/** A database's own name. What sets tables apart follows a `?`, so there is none in it. */
export function databaseName(kind: string, address: string): string {
  return `${kind}:${address.replaceAll('?', '%3F')}`;
}

/** The name of a database, and what sets these tables in it apart from others. `undefined`: the usual. */
export function placeName(
  database: string,
  { schema, prefix }: { readonly schema?: string | undefined; readonly prefix: string | undefined },
): string {
  const apart: string[] = [];
  if (schema !== undefined && schema !== STANDARD_SCHEMA) apart.push(`schema=${encodeURIComponent(schema)}`);
  if (prefix !== undefined && prefix !== STANDARD_PREFIX) apart.push(`prefix=${prefix}`);
  return apart.length === 0 ? database : `${database}?${apart.join('&')}`;
}
