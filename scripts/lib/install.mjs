// Brings node_modules to what package-lock.json says, including the native build of better-sqlite3.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { canInstallPackages, installPackages } from './debian.mjs';
import { readJson, root } from './repo.mjs';
import { run } from './run.mjs';

const NATIVE_TOOLS = ['make', 'g++', 'python3'];
const NATIVE_HELP = [
  'better-sqlite3 is compiled on installation and needs make, g++ and python3.',
  '  Debian, Ubuntu:  sudo apt-get install build-essential python3',
  '  Fedora:          sudo dnf install make gcc-c++ python3',
  '  Alpine:          sudo apk add build-base python3',
  '  macOS:           xcode-select --install',
].join('\n');

/** Why an installation is needed, or null when node_modules is what the lockfile says. */
export function whyInstall() {
  const installedFile = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(installedFile)) return 'node_modules is missing';
  const wanted = readJson(join(root, 'package-lock.json')).packages;
  const installed = readJson(installedFile).packages;
  for (const [path, { version, link, optional, resolved }] of Object.entries(wanted)) {
    // Optional packages of other platforms are in the lockfile and not on this machine.
    if (!path.startsWith('node_modules/') || optional) continue;
    const present = installed[path];
    if (!present) return `${path} is missing`;
    if (link ? present.resolved !== resolved : present.version !== version) return `${path} is outdated`;
  }
  return null;
}

/** Brings the packages, and runs none of their scripts: what needs no native module can start while those are built. */
export async function fetchPackages() {
  const { code } = await run('npm', ['ci', '--ignore-scripts']);
  if (code !== 0) console.error('npm ci failed.');
  return code === 0;
}

/**
 * Makes sure that better-sqlite3 loads in this version of Node; where it does not, runs the installation scripts that
 * package.json allows. One that nobody has looked at is an error (an npm before 11 does not know the flag).
 */
export async function provideNativeModules() {
  if (await nativeModuleLoads()) return true;
  const missing = await missingNativeTools();
  if (missing.length > 0) {
    console.log(`missing for the native build: ${missing.join(', ')}`);
    if (await canInstallPackages()) await installPackages(['build-essential', 'python3']);
    else console.log('trying without: a ready-made binary of better-sqlite3 may exist for this platform');
  }
  console.log('npm rebuild (the native build takes a minute or two)');
  await run('npm', ['rebuild', '--strict-allow-scripts'], { env: nativeBuildEnv() });
  if (await nativeModuleLoads()) return true;
  console.error('better-sqlite3 does not load in this version of Node.');
  if ((await missingNativeTools()).length > 0) console.error(NATIVE_HELP);
  return false;
}

async function nativeModuleLoads() {
  const probe = "new (require('better-sqlite3'))(':memory:').close()";
  return (await run(process.execPath, ['-e', probe], { capture: true })).code === 0;
}

async function missingNativeTools() {
  const missing = [];
  for (const tool of NATIVE_TOOLS) {
    if ((await run(tool, ['--version'], { capture: true })).code !== 0) missing.push(tool);
  }
  return missing;
}

/** CI tests SQLite and measures nothing with it: optimising it less halves the time of its build. */
function nativeBuildEnv() {
  const flags = process.env.CI ? { CFLAGS: '-O1', CXXFLAGS: '-O1' } : {};
  return { ...flags, ...withHeadersOfNode() };
}

/** Node's own headers, where they came with Node, so that node-gyp does not download them. */
function withHeadersOfNode() {
  if (process.env.npm_config_nodedir) return process.env;
  const prefix = dirname(dirname(process.execPath));
  const header = join(prefix, 'include', 'node', 'node_version.h');
  if (!existsSync(header)) return process.env;
  const text = readFileSync(header, 'utf8');
  const part = (name) => new RegExp(`#define NODE_${name}_VERSION (\\d+)`).exec(text)?.[1];
  const version = ['MAJOR', 'MINOR', 'PATCH'].map(part).join('.');
  return version === process.versions.node ? { ...process.env, npm_config_nodedir: prefix } : process.env;
}
