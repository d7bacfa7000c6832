// From a fresh clone to something that can be run: dependencies and build, each said while it is done.
import { checkNativeModule, install, whyInstall } from './install.mjs';
import { run } from './run.mjs';

/** Installs what is missing and builds. Answers whether all went well. */
export async function makeReady(what) {
  const reason = whyInstall();
  if (reason) {
    console.log(`${reason}: installing what ${what} needs`);
    if (!(await install())) return false;
  }
  if (!(await checkNativeModule())) return false;
  console.log('building (the first time takes half a minute)');
  return (await run(process.execPath, ['scripts/build.mjs'])).code === 0;
}
