/** Schedules on Postgres: what SQLite shows, and clocks of processes that are not the store's. */
import { onSchema } from '../soak/store.js';
import { onPostgres } from '../support/postgres.js';
import { describeSchedules } from '../support/schedule-cases.js';

jest.setTimeout(60_000);

const postgres = onPostgres();

let stores = 0;
const newStore = () => onSchema(postgres.server.url, `schedule_${(stores += 1)}`);
describeSchedules({ newStore, clock: 'server' });
