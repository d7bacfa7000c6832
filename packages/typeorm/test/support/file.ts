/** A SQLite file of an application for one case, with initialized data sources that end with it. */
import type { DataSource, DataSourceOptions } from 'typeorm';
import { newPlace } from './place.js';

/** A file, and what a case opened on it. */
export interface FilePlace {
  readonly file: string;
  /** An initialized data source of its own. */
  dataSource(options: Partial<DataSourceOptions>): Promise<DataSource>;
  /** Ends every data source and removes the file. */
  close(): Promise<void>;
}

/** A new one. */
export function newFile(): FilePlace {
  const place = newPlace();
  const made = new Set<DataSource>();
  return {
    file: place.file,
    dataSource: async (options) => {
      const dataSource = await place.dataSource(options).initialize();
      made.add(dataSource);
      return dataSource;
    },
    close: async () => {
      for (const one of made) if (one.isInitialized) await one.destroy();
      place.remove();
    },
  };
}
