// A program for the test: how long a quick run of each backend is planned to take, as one line of JSON.
import { readOptions } from '../src/options.mjs';
import { planOf } from '../src/plan.mjs';

const stages = await planOf(readOptions(['--quick']));
console.log(
  JSON.stringify(Object.fromEntries(stages.map(({ backend, expectedMs }) => [backend, expectedMs]))),
);
