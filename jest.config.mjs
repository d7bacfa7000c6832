import { availableParallelism } from 'node:os';

// Tests run the TypeScript sources of every package directly: the "@guard/source" export condition leads from
// one package to the sources of another, so nothing has to be built first.
const shared = {
  testEnvironment: 'node',
  testEnvironmentOptions: { customExportConditions: ['@guard/source', 'node', 'node-addons'] },
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  setupFilesAfterEnv: ['<rootDir>/scripts/jest-real-time.cjs'],
  modulePathIgnorePatterns: ['<rootDir>/(packages|examples)/[^/]+/dist/'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        swcrc: false,
        sourceMaps: 'inline',
        jsc: {
          target: 'es2022',
          keepClassNames: true,
          // Without it, swc loses both errors when a body and its `await using` disposer throw.
          externalHelpers: true,
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
        },
        module: { type: 'commonjs' },
      },
    ],
  },
};

/** Virtual time and one process: no server, no native module, no build, and no wait that a busy machine could spoil. */
const VIRTUAL = ['/packages/core/test/', '/packages/testing/test/(clock|contract|simulator)'];
/** Hours of outages that schedules live through: `npm run test:deep`. */
const HOURS = '/core/test/schedule/hours/';
/** Adapters whose every test needs a real server. */
const ON_SERVERS = ['<rootDir>/packages/etcd/test/', '<rootDir>/packages/redis/test/'];

export default {
  // A busy machine is slow; what hangs is bounded all the same.
  testTimeout: 60_000,
  // Most of the long tests wait for real time most of the while: more of them at once than there are cores.
  maxWorkers: Math.max(5, availableParallelism() - 1),
  // Contract suites say themselves how many of their cases run at once.
  maxConcurrency: 16,
  testSequencer: '<rootDir>/scripts/jest-long-first.cjs',
  projects: [
    {
      ...shared,
      displayName: 'virtual',
      testRegex: VIRTUAL.map((path) => `${path}.*\\.spec\\.ts$`),
      testPathIgnorePatterns: ['/node_modules/', HOURS],
    },
    {
      ...shared,
      displayName: 'unit',
      testMatch: ['<rootDir>/packages/*/test/**/*.spec.ts', '<rootDir>/test/**/*.spec.ts'],
      testPathIgnorePatterns: [
        '/node_modules/',
        '<rootDir>/test/structure/',
        '/test/(servers|smoke|mutations|topologies|soak|benchmarks)/',
        ...VIRTUAL,
        ...ON_SERVERS,
      ],
    },
    // Real servers, started by the tests themselves.
    {
      ...shared,
      displayName: 'servers',
      testMatch: [
        '<rootDir>/packages/*/test/servers/**/*.spec.ts',
        ...ON_SERVERS.map((folder) => `${folder}**/*.spec.ts`),
      ],
      testPathIgnorePatterns: ['/node_modules/', '/test/topologies/'],
    },
    // The same in containers; `npm run test:smoke` brings an engine and images.
    {
      ...shared,
      displayName: 'smoke',
      testMatch: ['<rootDir>/packages/*/test/smoke/**/*.spec.ts'],
    },
    // What `npm run test:deep` plays: mechanisms taken out, one by one, which the simulator must notice; the contract
    // suites on every other topology; schedules under processes that are killed and through hours of outages; the report
    // of the benchmarks; and the demo on servers.
    {
      ...shared,
      displayName: 'deep',
      testMatch: [
        '<rootDir>/packages/*/test/{mutations,topologies,soak}/**/*.spec.ts',
        `<rootDir>/packages${HOURS}*.spec.ts`,
        '<rootDir>/test/benchmarks/**/*.spec.ts',
        '<rootDir>/examples/*/test/deep/**/*.spec.ts',
      ],
    },
    // Their own programs, in processes of their own: they need a build.
    {
      ...shared,
      displayName: 'examples',
      testMatch: ['<rootDir>/examples/*/test/**/*.spec.ts'],
      testPathIgnorePatterns: ['/node_modules/', '/test/deep/'],
    },
    { ...shared, displayName: 'structure', testMatch: ['<rootDir>/test/structure/**/*.spec.ts'] },
  ],
};
