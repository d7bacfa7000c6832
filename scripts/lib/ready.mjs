// From a fresh clone to something that can be run: dependencies and build, each said while it is done.
import { fetchPackages, provideNativeModules, whyInstall } from './install.mjs';
import { run } from './run.mjs';

/** Installs what is missing and builds. Answers whether all went well. */
export async function makeReady(what) {
  const reason = whyInstall();
  if (reason) {
    console.log(`${reason}: installing what ${what} needs`);
    if (!(await fetchPackages())) return false;
  }
  console.log('building (the first time takes half a minute)');
  // The compiler of TypeScript does not need the native modules; the types were checked where the sources come from.
  const build = async () => (await run(process.execPath, ['scripts/build.mjs', '--unchecked'])).code === 0;
  return (await Promise.all([provideNativeModules(), build()])).every(Boolean);
}
