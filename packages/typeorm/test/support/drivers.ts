/**
 * better-sqlite3 with eyes on it. TypeORM takes a driver as an option and Guard uses the one that TypeORM loaded, so
 * everything that goes to a file in a process goes through here.
 */
import Database from 'better-sqlite3';

/** A driver that hands every statement to `see` before it is carried out. */
export function watchedDriver(see: (statement: string, file: string) => void): unknown {
  return class extends Database {
    constructor(file: string, options: Database.Options) {
      super(file, { ...options, verbose: (statement) => see(String(statement), file) });
    }
  };
}

type Verb = (...parameters: unknown[]) => unknown;

/** A driver that calls `before` and `after` around every statement. */
export function hookedDriver(
  before: (statement: string) => void,
  after: (statement: string) => void,
): unknown {
  return class extends Database {
    constructor(file: string, options: Database.Options) {
      super(file, options);
      const prepare = this.prepare.bind(this);
      Object.defineProperty(this, 'prepare', { value: (text: string) => hooked(text, prepare(text)) });
    }
  };

  function hooked(text: string, statement: Database.Statement): Database.Statement {
    for (const verb of ['run', 'get', 'all'] as const) {
      const perform: Verb = statement[verb].bind(statement);
      const around: Verb = (...parameters) => {
        before(text);
        const result = perform(...parameters);
        after(text);
        return result;
      };
      Object.defineProperty(statement, verb, { value: around });
    }
    return statement;
  }
}

/** A connection of a person with a shell: raw, waits for nobody unless it is told to. */
export function shell(file: string, waitMs = 0): Database.Database {
  return new Database(file, { timeout: waitMs });
}
