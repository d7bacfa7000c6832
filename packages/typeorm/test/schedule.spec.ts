/** Schedules on one SQLite file. */
import { join } from 'node:path';
import { onFile } from './soak/store.js';
import { newPlace, type Place } from './support/place.js';
import { describeSchedules } from './support/schedule-cases.js';

jest.setTimeout(60_000);

let place: Place;
beforeAll(() => {
  place = newPlace();
});
afterAll(() => place.remove());

let stores = 0;
const newStore = () => onFile(join(place.folder, `${(stores += 1)}.sqlite`));
describeSchedules({ newStore, clock: 'process' });
