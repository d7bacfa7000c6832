import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { failureOf, startWorker } from '@guard/testing';
import { privateFolder } from '../../src/process/private-folder.js';

jest.setTimeout(60_000);

let folder: string;
let place: string;

beforeEach(() => {
  folder = mkdtempSync(join(os.tmpdir(), 'guard-private-'));
  place = join(folder, 'place');
});

afterEach(() => {
  jest.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

describe('A folder under a known name', () => {
  it('is made for this user alone, and taken again', () => {
    expect(privateFolder(place)).toBe(place);
    expect(lstatSync(place).mode & 0o777).toBe(0o700);
    chmodSync(place, 0o755);
    expect(privateFolder(place)).toBe(place);
    expect(lstatSync(place).mode & 0o777).toBe(0o700);
  });

  it('is refused where others can write, where it is a link, and where it belongs to somebody else', () => {
    mkdirSync(place);
    chmodSync(place, 0o770);
    expect(() => privateFolder(place)).toThrow(
      `others than its owner can write to ${place}. Remove it, or set TMPDIR`,
    );
    const link = join(folder, 'link');
    symlinkSync(folder, link);
    expect(() => privateFolder(link)).toThrow(`${link} is no folder of this user`);
    const me = process.getuid?.() ?? 0;
    jest.spyOn(process, 'getuid').mockReturnValue(me + 1);
    expect(() => privateFolder(place)).toThrow(`${place} belongs to the user ${me}, not to ${me + 1}`);
  });
});

describe('The compiled code that workers share', () => {
  const talk = join(__dirname, 'workers', 'talk.ts');
  const cacheOf = (tmp: string): string => join(tmp, `guard-workers-${process.getuid?.() ?? 'all'}`);

  it('is not run where others can write it', async () => {
    jest.spyOn(os, 'tmpdir').mockReturnValue(folder);
    mkdirSync(cacheOf(folder));
    chmodSync(cacheOf(folder), 0o777);
    const error = await failureOf(startWorker(talk).finish());
    expect(String(error)).toMatch(/others than its owner can write to .*guard-workers-/);
  });

  it('goes when it is a week old, as soon as a worker adds some', async () => {
    jest.spyOn(os, 'tmpdir').mockReturnValue(folder);
    const cache = cacheOf(folder);
    mkdirSync(cache);
    const put = (name: string, ageDays: number): void => {
      writeFileSync(join(cache, name), '');
      const atS = lstatSync(join(cache, name)).mtimeMs / 1_000 - ageDays * 86_400;
      utimesSync(join(cache, name), atS, atS);
    };
    put('old.js', 8);
    put('young.js', 6);
    const worker = startWorker(talk, { input: { n: 1n, at: undefined } });
    worker.tell('?');
    await worker.finish();
    expect(existsSync(join(cache, 'old.js'))).toBe(false);
    expect(existsSync(join(cache, 'young.js'))).toBe(true);
  });
});
