// Tests run the TypeScript sources of every package directly: the "@guard/source" export condition leads from
// one package to the sources of another, so nothing has to be built first.
const shared = {
  testEnvironment: 'node',
  testEnvironmentOptions: { customExportConditions: ['@guard/source', 'node', 'node-addons'] },
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  modulePathIgnorePatterns: ['<rootDir>/packages/[^/]+/dist/'],
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

export default {
  projects: [
    {
      ...shared,
      displayName: 'unit',
      testMatch: ['<rootDir>/packages/*/test/**/*.spec.ts', '<rootDir>/test/**/*.spec.ts'],
      testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/structure/'],
    },
    { ...shared, displayName: 'structure', testMatch: ['<rootDir>/test/structure/**/*.spec.ts'] },
  ],
};
