/** Nest 12, which is ESM only, in an application that is CommonJS: Node loads it by require. */
import { check } from './check.js';

void check();
