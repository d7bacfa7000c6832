// `npm run test:consumers`: what is published is what is tested. Packs the packages, installs the tarballs into a new
// project outside of this repository, and runs small applications against them. Needs a build.
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './lib/repo.mjs';
import { run } from './lib/run.mjs';

const PACKAGES = ['core', 'testing'];
const APPLICATIONS = ['cjs/main.cjs', 'esm/main.mjs'];
const COMPILERS = ['5.4', '5.9', '6.0', '7.0'];
const COMPILER_FLAGS = [
  ...['--noEmit', '--strict', '--skipLibCheck', 'false', '--module', 'nodenext', '--types', 'node'],
  ...['--moduleResolution', 'nodenext', '--target', 'es2022', '--lib', 'es2023,esnext.disposable'],
];

const folder = mkdtempSync(join(tmpdir(), 'guard-consumers-'));
try {
  process.exitCode = (await consume()) ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function consume() {
  for (const name of PACKAGES) {
    const packed = ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder];
    if ((await run('npm', packed, { cwd: join(root, 'packages', name) })).code !== 0) return false;
  }
  const tarballs = readdirSync(folder).map((file) => `./${file}`);
  const compilers = COMPILERS.map((version) => `ts${version}@npm:typescript@${version}`);
  writeFileSync(join(folder, 'package.json'), '{ "name": "consumer", "private": true, "type": "module" }\n');
  const install = [
    'install',
    '--silent',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    ...tarballs,
    '@types/node@20',
    ...compilers,
  ];
  if ((await run('npm', install, { cwd: folder })).code !== 0) return false;
  cpSync(join(root, 'test', 'consumers'), join(folder, 'applications'), { recursive: true });
  let ok = true;
  for (const application of APPLICATIONS) {
    const { code } = await run(process.execPath, [join('applications', application)], { cwd: folder });
    if (code !== 0) console.error(`${application} failed`);
    ok &&= code === 0;
  }
  for (const version of COMPILERS) {
    const compiler = join('node_modules', `ts${version}`, 'bin', 'tsc');
    const args = [compiler, ...COMPILER_FLAGS, join('applications', 'types', 'main.ts')];
    const { code } = await run(process.execPath, args, { cwd: folder });
    console.log(`types with TypeScript ${version}: ${code === 0 ? 'ok' : 'FAILED'}`);
    ok &&= code === 0;
  }
  return ok;
}
