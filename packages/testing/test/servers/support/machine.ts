/** A machine as a test wants it: a temporary folder of its own, and programs that stand before the real ones. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

export class Machine {
  /** Everything of it. */
  readonly folder: string;
  /** Its temporary folder. */
  readonly tmp: string;
  readonly #programs: string;

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'guard-machine-'));
    this.tmp = join(this.folder, 'tmp');
    this.#programs = join(this.folder, 'bin');
    mkdirSync(this.tmp);
    mkdirSync(this.#programs);
    // Servers that refuse root run as another user, and come through here.
    chmodSync(this.folder, 0o755);
    chmodSync(this.tmp, 0o1777);
  }

  /** The environment of a process on it. */
  get env(): { TMPDIR: string; PATH: string } {
    return { TMPDIR: this.tmp, PATH: `${this.#programs}${delimiter}${process.env['PATH']}` };
  }

  /** The folder, in its temporary one, that belongs to this user under a known name. */
  known(name: string): string {
    return join(this.tmp, `${name}-${process.getuid?.() ?? 'all'}`);
  }

  /** Puts a shell script in the place of a program; it finds this machine's folder in `$HERE`. */
  install(name: string, script: string): void {
    const file = join(this.#programs, name);
    writeFileSync(file, `#!/bin/sh\nHERE=${this.folder}\n${script}\n`, { mode: 0o755 });
    chmodSync(file, 0o755);
  }

  /** Puts a folder in the place of a program. */
  installFolder(name: string): void {
    mkdirSync(join(this.#programs, name));
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}
