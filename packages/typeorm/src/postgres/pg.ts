/** What Guard asks of `pg` and of TypeORM's driver for it: typed by the members that are used, so that neither is imported. */
import type { Row } from '../row.js';
import type { Value } from '../server/statements.js';

/** What a connection of `pg` can do, as far as Guard uses it. */
export interface PgClient {
  /** What a request to cancel names it by. */
  readonly processID?: unknown;
  readonly secretKey?: unknown;
  /** Whether every result is asked for in binary, which no single query can change. */
  readonly binary?: unknown;
  query(config: PgQuery): Promise<{ readonly rows: readonly Row[] }>;
  on(event: string, listener: (...all: never[]) => void): unknown;
  removeListener(event: string, listener: (...all: never[]) => void): unknown;
}

/** A statement with its parameters, as `pg` takes it. */
export interface PgQuery {
  readonly text: string;
  readonly values?: readonly Value[];
  readonly name?: string;
  readonly types?: { getTypeParser(oid: number): (text: string) => unknown };
}

/** The data source's driver, as far as Guard uses it. */
export interface PgDriver {
  /** The pool of the server that takes writes; absent before the data source is initialized. */
  readonly master?: PgPool;
  obtainMasterConnection(): Promise<[PgClient, (error?: unknown) => void]>;
}

/** The pool of `pg`: what a further connection outside of it is made from. */
export interface PgPool {
  readonly options: { readonly max?: number };
  readonly ending?: boolean;
  readonly Client: new (options: object) => PgClient & {
    readonly host: string;
    readonly port: number;
    readonly ssl: unknown;
    readonly sslNegotiation?: string;
    connect(): Promise<unknown>;
    end(): Promise<void>;
    unref?(): void;
    /** What speaks to the server; a native client has none. */
    readonly connection?: PgConnection;
  };
}

/** What is below a client: the messages of the protocol. */
export interface PgConnection {
  readonly stream: { destroy(): unknown };
  connect(portOrPath: number | string, host?: string): void;
  requestSsl(): void;
  cancel(processID: number, secretKey: unknown): void;
  on(event: string, listener: (...all: never[]) => void): unknown;
}
