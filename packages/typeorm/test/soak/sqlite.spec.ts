/** The quick soak of schedules on SQLite: real processes with clocks of their own, killed and stopped. */
import { join } from 'node:path';
import { onFile } from './store.js';
import { itSoaks } from '../support/soaking.js';

itSoaks('SQLite', (folder) => (scene) => onFile(join(folder, `${scene}.sqlite`)));
