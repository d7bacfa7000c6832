// One image with every server, made from Debian's packages: where no image registry is reachable, the smoke imports
// it under a name of its own. Its entrypoint does for Postgres and MariaDB what those of the public images do.
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { canInstallPackages, installPackages } from './debian.mjs';
import { memoryFolder } from './memory-folder.mjs';
import { root } from './repo.mjs';
import { run } from './run.mjs';
import { SERVER_PACKAGES } from './server-programs.mjs';

const NAME = 'guard-test-servers:local';
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const ENTRYPOINT = 'docker-entrypoint.sh';

/** Variables of the environment that name an image, all with the one name. */
export const IMAGE_VARIABLES = Object.fromEntries(
  ['REDIS', 'ETCD', 'POSTGRES', 'MARIADB', 'PGBOUNCER'].map((kind) => [`GUARD_${kind}_IMAGE`, NAME]),
);

const FOLDER = join(root, '.tmp', 'server-image');
const TAR = join(FOLDER, 'image.tar');

/** Makes the image, or takes the one that was made before. Answers whether it is there. */
export async function makeServerImage() {
  if (!existsSync(TAR)) return makeImage(FOLDER, TAR);
  console.log(`taking ${TAR}; delete it to have it made anew`);
  return true;
}

/** The same, and imports it. */
export async function importServerImage(env) {
  if (!(await makeServerImage())) return false;
  const changes = [`ENV PATH=${PATH}`, `ENTRYPOINT ["${ENTRYPOINT}"]`].flatMap((each) => ['--change', each]);
  const { code, output } = await run('docker', ['import', ...changes, TAR, NAME], { env, capture: true });
  if (code !== 0) console.error(output);
  return code === 0;
}

async function makeImage(folder, tar) {
  if (!existsSync('/usr/sbin/debootstrap')) {
    if (!(await canInstallPackages())) return false;
    await installPackages(['debootstrap']);
  }
  const { mirror, suite } = await debianArchive();
  const memory = await memoryFolder('guard-image-');
  try {
    console.log(`debootstrap ${suite} with ${SERVER_PACKAGES.join(', ')}`);
    const include = `--include=${SERVER_PACKAGES.join(',')}`;
    const args = ['--variant=minbase', include, suite, memory.data, mirror];
    const made = await run('debootstrap', args, { capture: true });
    if (made.code !== 0) console.error(made.output);
    if (made.code !== 0) return false;
    installEntrypoint(memory.data);
    mkdirSync(folder, { recursive: true });
    const packed = await run('tar', ['-C', memory.data, '-cf', `${tar}.new`, '.']);
    if (packed.code !== 0) return false;
    renameSync(`${tar}.new`, tar);
    return true;
  } finally {
    await memory.remove();
  }
}

/** The archive that this machine installs from. */
async function debianArchive() {
  const format = ['--format', '$(REPO_URI) $(CODENAME) $(COMPONENT)', 'Created-By: Packages'];
  const { output } = await run('apt-get', ['indextargets', ...format], { capture: true });
  const [mirror, suite] =
    output
      .split('\n')
      .find((line) => line.endsWith(' main'))
      ?.split(' ') ?? [];
  if (!mirror) throw new Error('apt-get names no archive of Debian');
  return { mirror, suite };
}

function installEntrypoint(rootfs) {
  const target = join(rootfs, 'usr', 'local', 'bin');
  cpSync(join(root, 'scripts', 'docker', 'entrypoint.sh'), join(target, ENTRYPOINT));
  chmodSync(join(target, ENTRYPOINT), 0o755);
  // Debian keeps the programs of Postgres outside PATH.
  const [version] = readdirSync(join(rootfs, 'usr', 'lib', 'postgresql'));
  for (const program of ['postgres', 'initdb']) {
    symlinkSync(`/usr/lib/postgresql/${version}/bin/${program}`, join(target, program));
  }
}
