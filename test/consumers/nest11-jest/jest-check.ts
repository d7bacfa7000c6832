/** Nest 11 as CommonJS under Jest, as the Nest command line sets it up. */
import { check } from './check';

test('the application does what it should', () => check(), 25_000);
