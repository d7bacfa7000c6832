/** MariaDB. */
import { checkGiven, flag, texts } from './arguments.js';
import { addressIn, loginIn, type AddressForm } from './environment.js';
import { freePort, LOOPBACK } from './ports.js';
import type { SqlServer } from './postgres.js';
import type { Recipe } from './recipe.js';
import { externalServer, startServer } from './start.js';
import { answers, mariadbGreeting } from './wire.js';

const MARIADB_ADDRESS: AddressForm = { schemes: ['mariadb', 'mysql'], defaultPort: 3306 };
const VARIABLE = 'GUARD_MARIADB_URL';
const DATA = 'data';
const SETUP = 'setup.sql';
const USER = 'root';
const PASSWORD = 'guard';
const DATABASE = 'guard';
/**
 * What the public image makes of its environment, for the names above. One statement a line: the server reads it so.
 * The third is for an account of the installation that has no password and is nearer than '%' to this machine.
 */
const SETUP_SQL = [
  'CREATE DATABASE IF NOT EXISTS guard CHARACTER SET utf8mb4;',
  "CREATE USER IF NOT EXISTS 'root'@'%' IDENTIFIED BY 'guard';",
  "ALTER USER IF EXISTS 'root'@'127.0.0.1' IDENTIFIED BY 'guard';",
  "GRANT ALL PRIVILEGES ON *.* TO 'root'@'%' WITH GRANT OPTION;",
  '',
].join('\n');

/** How MariaDB is set up. */
export interface MariadbOptions {
  /** Whether a commit waits for the disk, as in production. Default `false`; it survives `kill` either way. */
  readonly fsync?: boolean;
  /** More arguments of `mariadbd`, after Guard's own. */
  readonly args?: readonly string[];
}

/** One MariaDB server: from `GUARD_MARIADB_URL`, or started. */
export async function startMariadb(options: MariadbOptions = {}): Promise<SqlServer> {
  checkGiven('startMariadb options', options, { fsync: flag, args: texts });
  const url = addressIn(VARIABLE, MARIADB_ADDRESS);
  if (url !== undefined) return externalMariadb(url);
  return startServer({
    variable: VARIABLE,
    recipe: async () => mariadbRecipe(await freePort(), options),
    finish: (server) =>
      Object.assign(server, {
        ...{ user: USER, password: PASSWORD, database: DATABASE },
        url: `mariadb://${USER}:${PASSWORD}@${server.host}:${server.port}/${DATABASE}`,
      }),
  });
}

async function externalMariadb(url: URL): Promise<SqlServer> {
  const server = await externalServer('mariadb', VARIABLE, url, () =>
    mariadbGreeting(Number(url.port), url.hostname),
  );
  const { user, password, database } = loginIn(url);
  return Object.assign(server, { user: user || USER, password, database: database || DATABASE });
}

function mariadbRecipe(port: number, { fsync = false, args = [] }: MariadbOptions): Recipe {
  const chosen = [
    ...[`--port=${port}`, `--bind-address=${LOOPBACK}`, '--skip-name-resolve'],
    ...['--innodb-log-file-size=16M', '--innodb-buffer-pool-size=64M', '--performance-schema=OFF'],
    ...(fsync ? [] : ['--innodb-flush-log-at-trx-commit=2', '--sync-binlog=0']),
    ...args,
  ];
  // It refuses root unless it is named.
  const asMe = process.getuid?.() === 0 ? ['--user=root'] : [];
  return {
    kind: 'mariadb',
    port,
    program: 'mariadbd',
    packages: ['mariadb-server-core', 'mariadb-client-core'],
    files: () => ({ [SETUP]: SETUP_SQL }),
    prepare: (folder) => [
      {
        program: 'mariadb-install-db',
        args: [
          ...['--no-defaults', `--datadir=${folder}/${DATA}`, '--skip-test-db', ...asMe],
          ...['--auth-root-authentication-method=normal', '--innodb-log-file-size=16M'],
          '--innodb-flush-method=nosync',
        ],
      },
    ],
    args: (folder) => [
      // A socket in the server's folder: the standard place may be another server's.
      ...['--no-defaults', `--datadir=${folder}/${DATA}`, `--socket=${folder}/socket`],
      ...[`--pid-file=${folder}/pid`, `--init-file=${folder}/${SETUP}`, ...asMe, ...chosen],
    ],
    data: [DATA],
    image: {
      variable: 'GUARD_MARIADB_IMAGE',
      name: 'mariadb:11.4',
      ownEntrypoint: true,
      environment: { MARIADB_ROOT_PASSWORD: PASSWORD, MARIADB_DATABASE: DATABASE },
      args: () => chosen,
    },
    isReady: () => answers(() => mariadbGreeting(port)),
  };
}
