// The server programs that tests start. On Debian, as root, the missing ones are installed; anywhere else the
// command that installs them is printed, and a test that needs one says so again when it fails.
import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { canInstallPackages, installPackages } from './debian.mjs';

const POSTGRES = '/usr/lib/postgresql';

/** `service`: what Debian would start at once and at every boot. */
export const PROGRAMS = [
  { program: 'redis-server', package: 'redis-server', service: 'redis-server' },
  { program: 'etcd', package: 'etcd-server', service: 'etcd' },
  { program: 'postgres', package: 'postgresql', service: 'postgresql' },
  // The two cores, and not mariadb-server, whose service and scripts nobody needs here.
  { program: 'mariadbd', package: 'mariadb-server-core' },
  { program: 'my_print_defaults', package: 'mariadb-client-core' },
  { program: 'pgbouncer', package: 'pgbouncer', service: 'pgbouncer' },
  // Makes the certificates of tests.
  { program: 'openssl', package: 'openssl' },
];

/** The Debian packages that bring them. */
export const SERVER_PACKAGES = PROGRAMS.map((entry) => entry.package);

/**
 * Installs what is missing, or says how to. Answers `false` only where an installation was tried and failed. A
 * test hands in another machine.
 */
export async function provideServerPrograms({
  programs = PROGRAMS,
  folders = programFolders,
  canInstall = canInstallPackages,
  install = installPackages,
} = {}) {
  const isInstalled = (program) => folders().some((folder) => existsSync(join(folder, program)));
  const missing = programs.filter(({ program }) => !isInstalled(program));
  if (missing.length === 0) {
    console.log(`${programs.map(({ program }) => program).join(', ')}: installed`);
    return true;
  }
  const packages = missing.map((entry) => entry.package);
  console.log(`missing: ${missing.map(({ program }) => program).join(', ')}`);
  if (!(await canInstall())) {
    console.log(`to install them: sudo apt-get install ${packages.join(' ')}`);
    console.log('until then, tests use the addresses in the environment (GUARD_REDIS_URL …) or containers');
    return true;
  }
  await install(packages, { services: missing.flatMap(({ service }) => service ?? []) });
  const left = missing.filter(({ program }) => !isInstalled(program));
  for (const { program } of left) console.error(`${program} is still missing after the installation`);
  return left.length === 0;
}

/** Debian keeps the programs of Postgres outside PATH. */
function programFolders() {
  const versions = existsSync(POSTGRES) ? readdirSync(POSTGRES) : [];
  return [
    ...(process.env.PATH ?? '').split(delimiter),
    '/usr/sbin',
    ...versions.map((version) => join(POSTGRES, version, 'bin')),
  ];
}
