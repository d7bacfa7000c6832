/** A place of its own on a database server, and what a test opened on it. */
import { DataSource, type DataSourceOptions } from 'typeorm';

/** A schema or a database of a server. */
export interface Place {
  readonly url: string;
  /** What it is called there. */
  readonly schema: string;
  /** An initialized data source of its own. */
  dataSource(options?: Partial<DataSourceOptions>): Promise<DataSource>;
  /** Ends every data source. */
  close(): Promise<void>;
}

/** A place whose data sources have these options, unless a test asks for others. */
export function placeOf(url: string, schema: string, own: Partial<DataSourceOptions>): Place {
  const opened: DataSource[] = [];
  return {
    ...{ url, schema },
    dataSource: async (options = {}) => {
      const made = new DataSource({ ...own, ...options } as DataSourceOptions);
      opened.push(await made.initialize());
      return made;
    },
    close: async () => {
      for (const one of opened) if (one.isInitialized) await one.destroy();
    },
  };
}
