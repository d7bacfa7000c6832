/** The quick soak of schedules on Postgres: real processes with clocks of their own, killed and stopped. */
import { itSoaks } from '../support/soaking.js';
import { onPostgres } from '../support/postgres.js';
import { onSchema } from './store.js';

const postgres = onPostgres();

let plays = 0;

itSoaks('Postgres', () => {
  // What is played a second time must not find what the first one left.
  plays += 1;
  const prefix = `soak_${plays}`;
  return (scene) => onSchema(postgres.server.url, `${prefix}_${scene}`);
});
