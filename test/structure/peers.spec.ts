/** Peer ranges admit what is tested, and nothing else: a table of the versions that are installed here decides. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { filesUnder, type Manifest, manifest, packageNames, root } from './support/source.js';

interface Tested {
  /** The name under which tests import it: the library's own, or an alias such as `ioredis6`. */
  readonly alias: string;
  readonly version: string;
}

/** Libraries that tests reach by another road than an import of their name. */
const LOADED_BY_NAME = ['testcontainers'];

const peers = packageNames().flatMap((name) =>
  Object.entries(manifest(`packages/${name}`).peerDependencies ?? {})
    .filter(([peer]) => !peer.startsWith('@guard/'))
    .map(([peer, range]) => ({ name, peer, range, tested: testedVersions(peer) })),
);

describe('peer ranges', () => {
  it('are found', () => expect(peers.map(({ peer }) => peer)).toContain('typeorm'));

  it.each(peers)('of $name for $peer ($range) are what is tested', ({ range, tested }) => {
    expect(problemsOf(range, tested)).toEqual([]);
  });

  it.each(peers.filter(({ peer }) => !LOADED_BY_NAME.includes(peer)))(
    'of $name for $peer are tested by something that loads each version',
    ({ name, tested }) => {
      const texts = [
        ...filesUnder(`packages/${name}/test`, '.ts'),
        ...filesUnder('test/consumers', '.mjs', '.ts'),
      ];
      const imported = (alias: string): boolean => texts.some(({ text }) => text.includes(`'${alias}'`));
      expect(tested.map(({ alias }) => alias).filter((alias) => !imported(alias))).toEqual([]);
    },
  );

  const five = { alias: 'x', version: '5.4.1' };
  const six = { alias: 'x6', version: '6.0.0' };
  const old = { alias: 'x03', version: '0.3.31' };

  it.each([
    ['^5.0.0 || ^6.0.0', [five], '^6.0.0 is not tested'],
    ['^0.3.20 || ^5.0.0', [five], '^0.3.20 is not tested'],
    ['^0.2.0 || ^5.0.0', [five, old], '^0.2.0 is not tested'],
    ['^5.5.0', [five], '^5.5.0 is not tested'],
    ['>=5.0.0', [five], '>=5.0.0 has no upper end'],
    ['*', [five], '* has no upper end'],
    ['^5.0.0', [five, six], 'x6 6.0.0 is tested and not admitted'],
  ] as const)('see that in %s %j', (range, tested, problem) => {
    expect(problemsOf(range, tested)).toContain(problem);
  });

  it('accept one part for each tested version', () => {
    expect(problemsOf('^0.3.20 || ^5.4.0 || ^6.0.0', [five, six, old])).toEqual([]);
  });
});

function problemsOf(range: string, tested: readonly Tested[]): string[] {
  const parts = range.split('||').map((part) => part.trim());
  const open = parts
    .filter((part) => !/^\^\d+\.\d+\.\d+$/.test(part))
    .map((part) => `${part} has no upper end`);
  const untested = parts.filter((part) => !tested.some(({ version }) => admits(part, version)));
  const refused = tested.filter(({ version }) => !parts.some((part) => admits(part, version)));
  return [
    ...open,
    ...untested.map((part) => `${part} is not tested`),
    ...refused.map(({ alias, version }) => `${alias} ${version} is tested and not admitted`),
  ];
}

/** Whether `^a.b.c` admits a version: no part up to the first that is not 0 differs, and it is not below. */
function admits(caret: string, version: string): boolean {
  const lowest = numbers(caret.slice(1));
  const given = numbers(version);
  const fixed = lowest.findIndex((number) => number !== 0);
  const differs = lowest.findIndex((number, index) => number !== given[index]);
  return differs === -1 || (differs > fixed && (given[differs] ?? 0) > (lowest[differs] ?? 0));
}

function numbers(version: string): readonly number[] {
  return version.split('.').map(Number);
}

/** Those of this repository, and those that consumers bring which are projects of their own: exact, in their manifests. */
function testedVersions(library: string): Tested[] {
  const ofConsumers = filesUnder('test/consumers', 'package.json').flatMap(({ text }) => {
    const version = (JSON.parse(text) as Manifest).dependencies?.[library];
    return version === undefined ? [] : [{ alias: library, version }];
  });
  return [...installedVersions(library), ...ofConsumers];
}

/** The versions of a library that the lockfile installs for this repository, by name and by alias. */
function installedVersions(library: string): Tested[] {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Record<string, { readonly version: string }>;
  };
  return Object.entries(manifest('.').devDependencies ?? {})
    .filter(([alias, wanted]) => alias === library || wanted.startsWith(`npm:${library}@`))
    .map(([alias]) => ({ alias, version: packages[`node_modules/${alias}`]?.version ?? 'not installed' }));
}
