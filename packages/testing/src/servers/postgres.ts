/** Postgres, and PgBouncer in front of it. */
import { invalidArgument } from '@guard/core';
import { checkGiven, flag, oneOf, text, texts, whole } from './arguments.js';
import { addressIn, loginIn, type AddressForm } from './environment.js';
import { freePort, LOOPBACK } from './ports.js';
import type { Recipe } from './recipe.js';
import type { TestServer } from './server.js';
import { externalServer, startServer } from './start.js';
import { answers, postgresGreeting } from './wire.js';

const POSTGRES_ADDRESS: AddressForm = { schemes: ['postgres', 'postgresql'], defaultPort: 5432 };
const PGBOUNCER_ADDRESS: AddressForm = { schemes: ['postgres', 'postgresql'], defaultPort: 6432 };
const DATA = 'data';
const USER = 'guard';
const DATABASE = 'postgres';
/** What PgBouncer has to know of the server behind it. */
const LOGIN_CHECKS = { host: text, port: whole(1, 65_535), user: text };
const POOL_CHECKS = {
  postgres: behind,
  poolMode: oneOf('session', 'transaction', 'statement'),
  poolSize: whole(1, 1_000),
};

/** A SQL server, with what a driver needs to log in. */
export interface SqlServer extends TestServer {
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

/** How Postgres is set up. */
export interface PostgresOptions {
  /** Whether a commit waits for the disk, as in production. Default `false`; it survives `kill` either way. */
  readonly fsync?: boolean;
  /** Settings, each as `name=value`, after Guard's own. */
  readonly settings?: readonly string[];
}

/** How PgBouncer is set up. */
export interface PgbouncerOptions {
  /** The server behind it. */
  readonly postgres: SqlServer;
  /** When a connection of the pool is given back. Default `transaction`. */
  readonly poolMode?: 'session' | 'transaction' | 'statement';
  /** Connections to the server behind, for each user and database. Default 20. */
  readonly poolSize?: number;
}

/** One Postgres server: from `GUARD_POSTGRES_URL`, or started. */
export async function startPostgres(options: PostgresOptions = {}): Promise<SqlServer> {
  checkGiven('startPostgres options', options, { fsync: flag, settings: texts });
  const url = addressIn('GUARD_POSTGRES_URL', POSTGRES_ADDRESS);
  if (url !== undefined) return externalPostgres('postgres', 'GUARD_POSTGRES_URL', url);
  return startServer({
    variable: 'GUARD_POSTGRES_URL',
    recipe: async () => postgresRecipe(await freePort(), options),
    finish: withLogin,
  });
}

/** One PgBouncer in front of a Postgres server: from `GUARD_PGBOUNCER_URL`, or started. */
export async function startPgbouncer(options: PgbouncerOptions): Promise<SqlServer> {
  checkGiven('startPgbouncer options', options, POOL_CHECKS, ['postgres']);
  const url = addressIn('GUARD_PGBOUNCER_URL', PGBOUNCER_ADDRESS);
  if (url !== undefined) return externalPostgres('pgbouncer', 'GUARD_PGBOUNCER_URL', url);
  return startServer({
    variable: 'GUARD_PGBOUNCER_URL',
    recipe: async () => pgbouncerRecipe(await freePort(), options),
    finish: withLogin,
  });
}

/** Checks a server that was started here, of which only the login matters. */
function behind(argument: string, value: unknown): void {
  if (typeof value !== 'object') throw invalidArgument(argument, value, 'must be a server of startPostgres');
  for (const [name, check] of Object.entries(LOGIN_CHECKS)) {
    check(`${argument}.${name}`, (value as Readonly<Record<string, unknown>>)[name]);
  }
}

/** Adds user, password and database, and an address with them. */
function withLogin(server: TestServer): SqlServer {
  return Object.assign(server, {
    user: USER,
    // Nobody checks it: the server trusts whoever comes from this machine.
    password: USER,
    database: DATABASE,
    url: `postgres://${USER}:${USER}@${server.host}:${server.port}/${DATABASE}`,
  });
}

async function externalPostgres(
  kind: 'postgres' | 'pgbouncer',
  variable: string,
  url: URL,
): Promise<SqlServer> {
  const { user, password, database } = loginIn(url);
  const login = { user: user || 'postgres', password, database: database || 'postgres' };
  const server = await externalServer(kind, variable, url, async () => {
    return (await postgresGreeting(Number(url.port), { host: url.hostname, ...login })) ?? 'unknown';
  });
  return Object.assign(server, login);
}

function postgresRecipe(port: number, { fsync = false, settings = [] }: PostgresOptions): Recipe {
  const chosen = [
    ...[`listen_addresses=${LOOPBACK}`, `fsync=${fsync ? 'on' : 'off'}`, 'max_connections=200'],
    // Shared memory that a killed server leaves behind goes with its folder.
    ...['dynamic_shared_memory_type=mmap', ...settings],
  ].flatMap((setting) => ['-c', setting]);
  return {
    kind: 'postgres',
    port,
    program: 'postgres',
    packages: ['postgresql'],
    unprivilegedUser: 'postgres',
    prepare: (folder) => [
      {
        program: 'initdb',
        args: [
          ...['--pgdata', `${folder}/${DATA}`, '--username', USER, '--auth', 'trust'],
          ...['--encoding', 'UTF8', '--locale', 'C', '--no-sync'],
        ],
      },
    ],
    args: (folder) => ['-D', `${folder}/${DATA}`, '-k', folder, '-p', String(port), ...chosen],
    data: [DATA],
    // Ends all sessions; what they had committed is kept.
    stopSignal: 'SIGINT',
    // A killed one would leave its shared memory behind.
    quickStop: 'SIGQUIT',
    image: {
      variable: 'GUARD_POSTGRES_IMAGE',
      name: 'postgres:17',
      ownEntrypoint: true,
      environment: { POSTGRES_USER: USER, POSTGRES_DB: DATABASE, POSTGRES_HOST_AUTH_METHOD: 'trust' },
      args: () => ['-p', String(port), ...chosen],
    },
    isReady: () => answers(() => postgresGreeting(port)),
  };
}

function pgbouncerRecipe(
  port: number,
  { postgres, poolMode = 'transaction', poolSize = 20 }: PgbouncerOptions,
): Recipe {
  const config = (folder: string): string =>
    [
      '[databases]',
      `* = host=${postgres.host} port=${postgres.port}`,
      '[pgbouncer]',
      `listen_addr = ${LOOPBACK}`,
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = trust',
      `auth_file = ${folder}/users.txt`,
      `pool_mode = ${poolMode}`,
      `default_pool_size = ${poolSize}`,
      'max_client_conn = 500',
      'ignore_startup_parameters = extra_float_digits,options',
      '',
    ].join('\n');
  return {
    kind: 'pgbouncer',
    port,
    program: 'pgbouncer',
    packages: ['pgbouncer'],
    unprivilegedUser: 'postgres',
    files: (folder) => ({
      'pgbouncer.ini': config(folder),
      'users.txt': `"${postgres.user}" "${postgres.password}"\n`,
    }),
    args: (folder) => [`${folder}/pgbouncer.ini`],
    data: [],
    image: { variable: 'GUARD_PGBOUNCER_IMAGE', name: 'edoburu/pgbouncer', user: 'postgres' },
    isReady: () => answers(() => postgresGreeting(port)),
  };
}
