/** The quick soak of schedules on Postgres: real processes with clocks of their own, killed and stopped. */
import { itSoaks } from '../support/soaking.js';
import { onPostgres } from '../support/postgres.js';
import { onSchema } from './store.js';

const postgres = onPostgres();

itSoaks('Postgres', () => (scene) => onSchema(postgres.server.url, `soak_${scene}`));
