// A program for the test: how long a quick run of each backend is planned to take, as one line of JSON.
import { BACKENDS, planOf } from '../src/plan.mjs';

const stages = await planOf({ backend: BACKENDS.join(','), quick: true });
console.log(
  JSON.stringify(Object.fromEntries(stages.map(({ backend, expectedMs }) => [backend, expectedMs]))),
);
