/**
 * The schema of `<file>-guard`, the file beside the application's that holds locks and state. Guard makes it by
 * itself, so its tables need no prefix and no migration. Keys are texts, which SQLite compares byte by byte.
 *
 * Rows with a limited life have `boot`, `since` and `deadline` (milliseconds of the machine's monotonic clock).
 */

/** `PRAGMA application_id` of the file: "Grd1". */
export const APPLICATION_ID = 1_198_679_089;
/** `PRAGMA user_version` of the file: goes up with every change of the schema. */
export const SCHEMA_VERSION = 1;

/**
 * The row with the empty key, which no lock can have, keeps the largest token of all rows that were ever removed: a
 * trigger writes it, so that tokens grow whoever removes a row, a person with a shell included (S2).
 *
 * A key has a row exactly while it is held or its lease ran out unmet, and a ticket exists only beside such a row. So
 * a free key is one that can be inserted, which is all that the fast path of an acquire does.
 */
export const CREATE_GUARD_FILE = `
  CREATE TABLE guard_lock (
    key TEXT NOT NULL PRIMARY KEY,
    claim TEXT NOT NULL,
    token INTEGER NOT NULL,
    session TEXT NOT NULL,
    label TEXT NOT NULL,
    run TEXT,
    boot TEXT NOT NULL,
    since INTEGER NOT NULL,
    deadline INTEGER NOT NULL
  ) WITHOUT ROWID;
  INSERT INTO guard_lock VALUES ('', '', 0, '', '', NULL, '', 0, 0);
  CREATE TRIGGER guard_lock_tokens_grow AFTER DELETE ON guard_lock
  BEGIN
    UPDATE guard_lock SET token = OLD.token WHERE key = '' AND token < OLD.token;
  END;

  CREATE TABLE guard_ticket (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    claim TEXT NOT NULL UNIQUE,
    session TEXT NOT NULL,
    label TEXT NOT NULL,
    run TEXT,
    floor INTEGER NOT NULL,
    ticket_ttl INTEGER NOT NULL,
    boot TEXT NOT NULL,
    since INTEGER NOT NULL,
    deadline INTEGER NOT NULL
  );
  CREATE INDEX guard_ticket_queue ON guard_ticket (key, id);
  CREATE INDEX guard_ticket_session ON guard_ticket (key, session, deadline);

  CREATE TABLE guard_tombstone (
    claim TEXT NOT NULL PRIMARY KEY,
    boot TEXT NOT NULL,
    since INTEGER NOT NULL,
    deadline INTEGER NOT NULL
  ) WITHOUT ROWID;

  CREATE TABLE guard_entry (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    value TEXT,
    version INTEGER NOT NULL UNIQUE,
    write_id TEXT NOT NULL,
    fence_lock TEXT,
    fence_token INTEGER,
    boot TEXT NOT NULL,
    since INTEGER NOT NULL,
    deadline INTEGER
  );
  CREATE TABLE guard_version (id INTEGER PRIMARY KEY CHECK (id = 1), last INTEGER NOT NULL);
  INSERT INTO guard_version VALUES (1, 0);

  PRAGMA application_id = 1198679089;
  PRAGMA user_version = 1;
`;
