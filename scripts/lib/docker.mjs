// A container engine for the smoke of testcontainers: the one that runs, else one of our own. Ours has its socket,
// its data and its state in one temporary folder, no network of its own, and ends with the script.
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { canInstallPackages, installPackages } from './debian.mjs';
import { memoryFolder } from './memory-folder.mjs';
import { run } from './run.mjs';

const READY_WITHIN_MS = 60_000;

/** `{ host, own, stop }`, or `{ why }` where no engine can be had. `own`: it has no images but those we import. */
export async function provideDocker() {
  const { runs, why } = await installDocker();
  if (runs) return { host: process.env.DOCKER_HOST, own: false, stop: async () => {} };
  return why === undefined ? startDockerd() : { why };
}

/** `{ runs: true }` where an engine runs already, `{ why }` where none can be had, else `{}`: one can be started now. */
export async function installDocker() {
  if ((await run('docker', ['info'], { capture: true })).code === 0) {
    console.log('a container engine runs already');
    return { runs: true };
  }
  if (!existsSync('/usr/sbin/dockerd')) {
    if (!(await canInstallPackages())) {
      return { why: 'no container engine answers, and only root on Debian can install one here' };
    }
    await installPackages(['docker.io'], { services: ['docker', 'containerd'] });
    if (!existsSync('/usr/sbin/dockerd'))
      return { why: 'dockerd is still missing after the installation of docker.io' };
  }
  if (process.getuid?.() === 0) return {};
  return { why: 'no container engine answers, and only root can start one' };
}

async function startDockerd() {
  const { folder, data, remove } = await memoryFolder('guard-docker-');
  const host = `unix://${folder}/docker.sock`;
  const log = openSync(join(folder, 'log'), 'a');
  const flags = ['--host', host, '--data-root', data, '--exec-root', join(folder, 'exec')];
  // Containers use the host's network, so no bridge and no packet filter is touched.
  const quiet = ['--bridge', 'none', '--iptables=false', '--ip6tables=false'];
  const engine = spawn(
    'setpriv',
    // It ends with this script, however the script ends.
    ['--pdeathsig', 'TERM', '/usr/sbin/dockerd', ...flags, '--pidfile', join(folder, 'pid'), ...quiet],
    { stdio: ['ignore', log, log] },
  );
  closeSync(log);
  const ended = new Promise((resolve) => engine.on('exit', resolve));
  const stop = async () => {
    engine.kill('SIGTERM');
    await Promise.race([ended, sleep(20_000, undefined, { ref: false })]);
    engine.kill('SIGKILL');
    await remove();
  };
  const env = { ...process.env, DOCKER_HOST: host };
  for (let waited = 0; engine.exitCode === null && waited < READY_WITHIN_MS; waited += 250) {
    const { code, output } = await run('docker', ['info', '--format', '{{.ServerVersion}} {{.Driver}}'], {
      env,
      capture: true,
    });
    if (code === 0) {
      console.log(`started dockerd ${output.trim()}`);
      return { host, own: true, stop };
    }
    await sleep(250);
  }
  const lines = readFileSync(join(folder, 'log'), 'utf8').trim().split('\n').slice(-5).join('\n');
  await stop();
  return { why: `dockerd does not start on this machine:\n${lines}` };
}
