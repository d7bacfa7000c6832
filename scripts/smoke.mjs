// `npm run test:smoke`: every server once through testcontainers. Uses the container engine that runs and the public
// images, or, as root on Debian, an engine and an image of our own. Where no engine can be had it exits with 75: nothing
// was shown, which is neither a success nor a defect. As root on Debian one can be had, so there it fails. `--prepare`
// makes the image and shows nothing.
import { canInstallPackages } from './lib/debian.mjs';
import { installDocker, provideDocker } from './lib/docker.mjs';
import { runJestProjects } from './lib/jest.mjs';
import { withoutEngine } from './lib/no-engine.mjs';
import { run } from './lib/run.mjs';
import { IMAGE_VARIABLES, importServerImage, makeServerImage } from './lib/server-image.mjs';
import { Stages } from './lib/stages.mjs';

const stages = new Stages();

if (process.argv.includes('--prepare')) {
  process.exitCode = await prepare();
} else {
  process.exitCode = await smoke();
  stages.print();
}

async function prepare() {
  const { runs, why } = await installDocker();
  if (why !== undefined) return endWithout(why);
  // Who has an engine has the public images.
  return runs || (await makeServerImage()) ? 0 : 1;
}

async function smoke() {
  let docker;
  let code = 1;
  await stages.run('smoke: container engine', async () => {
    docker = await provideDocker();
    if (docker.why === undefined) return true;
    code = await endWithout(docker.why);
    return code === 1 ? false : { skipped: 'no container engine' };
  });
  if (docker === undefined || docker.why !== undefined) return code;
  try {
    process.env.GUARD_TEST_SERVERS = 'docker';
    if (docker.own) {
      Object.assign(process.env, {
        DOCKER_HOST: docker.host,
        // The reaper of testcontainers is an image too; our engine ends with everything in it.
        TESTCONTAINERS_RYUK_DISABLED: 'true',
        // Otherwise testcontainers asks for the bridge, which our engine does not have.
        TESTCONTAINERS_HOST_OVERRIDE: '127.0.0.1',
      });
      const imported = await stages.run('smoke: image', () => importServerImage(process.env));
      if (!imported) return 1;
      for (const [name, image] of Object.entries(IMAGE_VARIABLES)) process.env[name] ??= image;
    }
    const shown = await stages.run('smoke: servers in containers', async () => {
      const { ok, passed, failed } = await runJestProjects(['smoke']);
      console.log(`${passed} passed, ${failed} failed`);
      return ok && (!docker.own || (await leavesNothing()));
    });
    return shown ? 0 : 1;
  } finally {
    await stages.run('smoke: end of the engine', async () => (await docker.stop(), true));
  }
}

async function endWithout(why) {
  const { code, says } = withoutEngine({ why, canHaveOne: await canInstallPackages() });
  console.error(says);
  return code;
}

async function leavesNothing() {
  const { code, output } = await run('docker', ['ps', '--all', '--format', '{{.Image}} {{.Command}}'], {
    capture: true,
  });
  const nothing = code === 0 && output.trim() === '';
  if (!nothing) console.error(`containers are left, or nobody can say:\n${output}`);
  return nothing;
}
