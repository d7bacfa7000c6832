// `npm run test:deep`: a thousand seeds of the simulator (`npm test` plays a hundred), and the mechanisms that are taken
// out one by one, each of which the simulator must notice. A stage of `.ci/run`.
import { runJest } from './lib/jest.mjs';

process.env.GUARD_SEEDS ??= '1000';
const paths = ['packages/testing/test/simulator', 'packages/testing/test/mutations'];
const { ok, passed, failed } = await runJest([
  '--selectProjects',
  'unit',
  'mutations',
  '--testPathPatterns',
  ...paths,
]);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = ok && passed > 0 ? 0 : 1;
