// Starts the soak of schedules: its director is TypeScript, like the nodes that it starts, and needs no build of tests.
import { startWorker } from '@guard/testing';

const director = startWorker(new URL('workers/director.ts', import.meta.url), {
  input: process.argv.slice(2),
});
process.exitCode = await director.finish();
