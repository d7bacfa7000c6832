/**
 * Data folders of SQL servers take seconds to make and are always the same. The first is kept beside the records of
 * this user, under a name that tells the version and how it was made; every later one is a copy.
 */
import { execFile, type ExecFileOptions } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chownSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { GuardError } from '@guard/core';
import { findProgram } from './find-program.js';
import { forget, record, templatesFolder } from './reap.js';
import type { Recipe } from './recipe.js';

/** Whose processes and files they are. */
export interface Owner {
  readonly uid?: number;
  readonly gid?: number;
}

/** Puts into `folder` what the programs of `recipe.prepare` make. */
export async function prepareData(
  recipe: Recipe,
  version: string,
  folder: string,
  owner: Owner,
): Promise<void> {
  if (recipe.prepare === undefined) return;
  const template = await templateOf(recipe, recipe.prepare, version, owner);
  const copy = pathOf('cp', ['coreutils']);
  for (const name of readdirSync(template)) {
    await runFor(folder, copy, ['-R', join(template, name), join(folder, name)], owner);
  }
}

async function templateOf(
  { kind, program, packages }: Recipe,
  prepare: NonNullable<Recipe['prepare']>,
  version: string,
  owner: Owner,
): Promise<string> {
  const how = JSON.stringify([findProgram(program), owner, prepare('FOLDER')]);
  const hash = createHash('sha256').update(how).digest('hex').slice(0, 12);
  const templates = templatesFolder();
  const template = join(templates, `${kind}-${version}-${hash}`);
  if (existsSync(template)) return template;
  const made = mkdtempSync(join(templates, 'making-'));
  record(made);
  try {
    if (owner.uid !== undefined) chownSync(made, owner.uid, owner.gid ?? owner.uid);
    for (const { program: name, args } of prepare(made)) {
      await runFor(made, pathOf(name, packages), args, {
        ...owner,
        cwd: made,
        env: { ...process.env, LC_ALL: 'C', HOME: made },
      });
    }
    renameSync(made, template);
  } catch (error) {
    // Another process may have been faster; its folder is as good.
    if (!existsSync(template)) throw error;
  } finally {
    rmSync(made, { recursive: true, force: true });
    forget(made);
  }
  return template;
}

/** Where a program is; else what brings it, or the variable that hides it. */
function pathOf(program: string, packages: readonly string[]): string {
  const path = findProgram(program);
  if (path !== undefined) return path;
  const help = `On Debian: apt-get install ${packages.join(' ')}`;
  throw new GuardError('unavailable', `${program} is not installed, or not in PATH. ${help}`);
}

/** Runs a program that works in a folder on the records: if this process is killed, both go with it. */
async function runFor(
  folder: string,
  program: string,
  args: readonly string[],
  options: ExecFileOptions,
): Promise<void> {
  try {
    const running = promisify(execFile)(program, args, options);
    if (running.child.pid !== undefined) record(folder, running.child.pid);
    await running;
  } finally {
    record(folder);
  }
}
