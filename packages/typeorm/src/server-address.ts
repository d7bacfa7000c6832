/**
 * Where a database server is, read out of the options of a data source as TypeORM and the drivers read them. No password
 * is in an answer, and no address makes an error: what a driver cannot use, it refuses itself.
 */

/** What of the options says where the server is. */
export interface ServerOptions {
  readonly url?: string;
  readonly host?: string;
  readonly port?: number | string;
  readonly database?: string;
  readonly username?: string;
  readonly socketPath?: string;
}

/** The option `extra`: what the application hands to the driver past TypeORM. It goes before the others. */
export interface ExtraOptions extends Omit<ServerOptions, 'url' | 'username'> {
  readonly connectionString?: string;
  readonly user?: string;
}

/** `host:port/database`; a host that is a folder has the socket in it. Without a database it is that of the user. */
export function postgresAddress(options: ServerOptions, extra: ExtraOptions | null = {}): string {
  const url = extra?.connectionString ?? options.url;
  const { host = 'localhost', port = 5432, database, username, user = username } = { ...options, ...extra };
  if (url === undefined) return `${host}:${port}/${database || (user ?? '')}`;
  const parts = partsOf(url);
  const { query } = parts;
  if (/^socket:/i.test(url)) return `/${parts.database}:${port}/${query.get('db') ?? ''}`;
  const named = query.get('host') || (/^%2f/i.test(parts.host) ? unescaped(parts.host) : parts.host);
  const owner = query.get('user') || parts.user;
  return `${named}:${query.get('port') || parts.port || port}/${parts.database || database || owner}`;
}

/** `host:port/database`, or `socket/database`. */
export function mariadbAddress(options: ServerOptions, extra: ExtraOptions | null = {}): string {
  const parts = options.url === undefined ? undefined : partsOf(options.url);
  const host = extra?.host ?? parts?.host ?? options.host ?? 'localhost';
  const port = extra?.port ?? (parts?.port || (options.port ?? 3306));
  const database = extra?.database ?? (parts?.database || (options.database ?? ''));
  return `${(extra?.socketPath ?? options.socketPath) || `${host}:${port}`}/${database}`;
}

/** What an address names. What it does not name is empty. */
interface Parts {
  readonly user: string;
  readonly host: string;
  readonly port: string;
  readonly database: string;
  readonly query: URLSearchParams;
}

/** A login may hold any character but a slash: the last `@` before the first slash ends it. */
function partsOf(url: string): Parts {
  const start = /^[^/]*:(?:\/\/)?/.exec(url)?.[0].length ?? 0;
  const rest = url.slice(start);
  const slash = rest.indexOf('/');
  const base = slash === -1 ? rest : rest.slice(0, slash);
  const end = isTorn(base, rest.slice(base.length)) ? rest.lastIndexOf('@') : base.lastIndexOf('@');
  const [, host = '', port = '', path = '', query = ''] = SERVER.exec(rest.slice(end + 1))!;
  const [user = ''] = rest.slice(0, Math.max(end, 0)).split(':');
  return {
    ...{ user: unescaped(user), host, port: port && String(Number(port)) },
    ...{ database: unescaped(path), query: new URLSearchParams(query) },
  };
}

/** Host, port, path and query. */
const SERVER = /^(\[[^\]]*\]|[^:/?#]*)(?::(\d*))?[^/?#]*(?:\/([^?#]*))?(?:\?([^#]*))?/;

/** Whether there is a slash in the login. No driver can read it, but what follows it must not be shown as a database. */
function isTorn(base: string, path: string): boolean {
  if (base.includes('@') || !path.includes('@')) return false;
  return !/^(\[[^\]]*\]|[^:?#]*)(:\d*)?([?#].*)?$/.test(base) || /^[^?#]*@[^?#]*\//.test(path);
}

/** As the drivers read a path of an address. */
function unescaped(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
