/** Nest 12, which is ESM only, in an application that is ESM. */
import { check } from './check.js';

void check();
