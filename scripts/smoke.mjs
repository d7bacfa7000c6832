// `npm run test:smoke`: every server once through testcontainers. Uses the container engine that runs and the public
// images, or, as root on Debian, an engine and an image of our own. Exits with 75 where no engine can be had: then
// nothing was shown, which is neither a success nor a defect. `--prepare` makes the image and shows nothing.
import { installDocker, provideDocker } from './lib/docker.mjs';
import { runJestProjects } from './lib/jest.mjs';
import { run } from './lib/run.mjs';
import { IMAGE_VARIABLES, importServerImage, makeServerImage } from './lib/server-image.mjs';
import { Stages } from './lib/stages.mjs';

const NOTHING_SHOWN = 75;
const stages = new Stages();

if (process.argv.includes('--prepare')) {
  process.exitCode = await prepare();
} else {
  process.exitCode = await smoke();
  stages.print();
}

async function prepare() {
  const { runs, why } = await installDocker();
  if (why !== undefined) console.error(why);
  if (why !== undefined) return NOTHING_SHOWN;
  // Who has an engine has the public images.
  return runs || (await makeServerImage()) ? 0 : 1;
}

async function smoke() {
  let docker;
  await stages.run('smoke: container engine', async () => {
    docker = await provideDocker();
    if (docker.why) console.error(docker.why);
    return docker.why ? { skipped: 'no container engine' } : true;
  });
  if (docker?.why !== undefined) return NOTHING_SHOWN;
  if (docker === undefined) return 1;
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

async function leavesNothing() {
  const { output } = await run('docker', ['ps', '--all', '--format', '{{.Image}} {{.Command}}'], {
    capture: true,
  });
  if (output.trim() !== '') console.error(`containers are left:\n${output}`);
  return output.trim() === '';
}
