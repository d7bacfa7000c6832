/** What `npm test` does about server programs on a machine that has none: played, since this one may have them all. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const SCRIPT = pathToFileURL(join(__dirname, '../../scripts/lib/server-programs.mjs')).href;
const PACKAGES =
  'redis-server etcd-server postgresql mariadb-server-core mariadb-client-core pgbouncer openssl';
const PROGRAMS = [
  'redis-server',
  'etcd',
  'postgres',
  'mariadbd',
  'my_print_defaults',
  'pgbouncer',
  'openssl',
];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'guard-programs-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Plays the script on a machine with one folder of programs; answers everything that it said. */
async function play(machine: string): Promise<string> {
  const program = `
    import { writeFileSync } from 'node:fs';
    import { provideServerPrograms } from ${JSON.stringify(SCRIPT)};
    const folders = () => [${JSON.stringify(folder)}];
    const ok = await provideServerPrograms({ folders, ${machine} });
    console.log('answered ' + ok);`;
  const run = promisify(execFile);
  const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '-e', program]);
  return stdout + stderr;
}

describe('npm test on a machine without any server', () => {
  it('says to an ordinary user exactly what to install, and goes on', async () => {
    const said = await play('canInstall: async () => false');
    expect(said).toContain(`missing: ${PROGRAMS.join(', ')}\n`);
    expect(said).toContain(`to install them: sudo apt-get install ${PACKAGES}\n`);
    expect(said).toContain('GUARD_REDIS_URL');
    expect(said).toContain('answered true');
  });

  it('installs them as root, and starts none of their services', async () => {
    const install = `async (packages, { services }) => {
      console.log('installing ' + packages.join(' ') + '; quiet: ' + services.join(' '));
      for (const name of ${JSON.stringify(PROGRAMS)}) writeFileSync(${JSON.stringify(`${folder}/`)} + name, '');
    }`;
    const said = await play(`canInstall: async () => true, install: ${install}`);
    expect(said).toContain(`installing ${PACKAGES}; quiet: redis-server etcd postgresql pgbouncer\n`);
    expect(said).toContain('answered true');
  });

  it('fails where the installation did not bring them, and names each', async () => {
    const said = await play('canInstall: async () => true, install: async () => {}');
    for (const program of PROGRAMS)
      expect(said).toContain(`${program} is still missing after the installation`);
    expect(said).toContain('answered false');
  });

  it('names only what is missing', async () => {
    for (const name of PROGRAMS.filter((program) => program !== 'etcd'))
      writeFileSync(join(folder, name), '');
    const said = await play('canInstall: async () => false');
    expect(said).toContain('missing: etcd\n');
    expect(said).toContain('sudo apt-get install etcd-server\n');
  });
});
