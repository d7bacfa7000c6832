/**
 * How much is outstanding, over all verbs that share it. A pair of claim and release is one verb's operation at a time,
 * so a verb that looked at its own only would send half as much at once.
 */

/** What is outstanding in one partition. */
export interface Load {
  operations: number;
}

/** Loads by partition. */
export class Loads {
  private readonly byPartition = new Map<string, Load>();

  of(partition: string): Load {
    let load = this.byPartition.get(partition);
    if (load === undefined) {
      load = { operations: 0 };
      this.byPartition.set(partition, load);
    }
    return load;
  }
}
