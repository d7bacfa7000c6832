// Debian's packages: whether they can be installed, and how, without a service that starts by itself.
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { run } from './run.mjs';

/** Debian asks this program before it starts a service during an installation; 101 means no. */
const POLICY = '/usr/sbin/policy-rc.d';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Whether this is root on a machine with apt-get. */
export async function canInstallPackages() {
  if (process.getuid?.() !== 0) return false;
  return (await run('apt-get', ['--version'], { capture: true })).code === 0;
}

/** Installs Debian packages. None of `services` is started, and none of them starts at the next boot. */
export async function installPackages(packages, { services = [] } = {}) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  console.log(`apt-get install ${packages.join(' ')}`);
  await withoutServiceStarts(async () => {
    await run('apt-get', ['update', '-q'], { env, capture: true });
    const install = ['install', '-y', '-q', '--no-install-recommends', ...packages];
    const { code, output } = await run('apt-get', install, { env, capture: true });
    if (code !== 0) console.error(output);
  });
  for (const service of services) await run('update-rc.d', [service, 'disable'], { capture: true });
}

/**
 * A policy that is there already is the machine owner's; it is left alone. An own one goes again whatever happens, but
 * for SIGKILL: left behind, it would keep every later installation from starting its services.
 */
export async function withoutServiceStarts(work, { policy = POLICY } = {}) {
  if (existsSync(policy)) return work();
  const remove = () => rmSync(policy, { force: true });
  const interrupted = (signal) => {
    remove();
    for (const name of SIGNALS) process.off(name, interrupted);
    process.kill(process.pid, signal);
  };
  for (const signal of SIGNALS) process.on(signal, interrupted);
  process.on('exit', remove);
  writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    return await work();
  } finally {
    remove();
    process.off('exit', remove);
    for (const signal of SIGNALS) process.off(signal, interrupted);
  }
}
