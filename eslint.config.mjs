import js from '@eslint/js';
import tseslint from 'typescript-eslint';

const CLOCK =
  'Time comes from the guard’s clock (packages/core/src/runtime/clock.ts), so that tests can hold it.';
const RANDOM = 'Random numbers come from packages/core/src/runtime/random.ts, so that tests can seed them.';

const timers = ['setTimeout', 'setInterval', 'setImmediate'].map((name) => ({ name, message: CLOCK }));

const nondeterminism = [
  { selector: 'CallExpression[callee.object.name="Date"][callee.property.name="now"]', message: CLOCK },
  { selector: 'NewExpression[callee.name="Date"][arguments.length=0]', message: CLOCK },
  { selector: 'CallExpression[callee.name="Date"]', message: CLOCK },
  { selector: 'MemberExpression[object.name="Math"][property.name="random"]', message: RANDOM },
  {
    selector: 'MemberExpression[object.name="process"][property.name="exit"]',
    message: 'A library never ends its process.',
  },
];

const nodeGlobals = [
  ...['AbortController', 'AbortSignal', 'Buffer', 'URL', 'console', 'fetch', 'performance', 'process'],
  ...['clearInterval', 'clearTimeout', 'queueMicrotask', 'setImmediate', 'setInterval', 'setTimeout'],
  ...['structuredClone', 'TextDecoder', 'TextEncoder'],
];

export default tseslint.config(
  {
    // Projects of their own bring what they import.
    ignores: ['**/dist/**', '**/node_modules/**', '**/coverage/**', '**/.tmp/**', 'test/consumers/nest*/**'],
  },
  js.configs.recommended,
  {
    files: ['**/*.{mjs,cjs,js}'],
    languageOptions: { globals: Object.fromEntries(nodeGlobals.map((name) => [name, 'readonly'])) },
  },
  {
    files: ['**/*.cjs'],
    languageOptions: { sourceType: 'commonjs', globals: { module: 'writable', require: 'readonly' } },
  },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: {
      parserOptions: { project: './tsconfig.lint.json', tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      // A port is asynchronous; an implementation that happens to need no await still is.
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrorsIgnorePattern: '^_' },
      ],
    },
  },
  {
    files: ['packages/*/src/**/*.ts'],
    rules: {
      'max-lines': ['error', { max: 300 }],
      'max-lines-per-function': ['error', { max: 70, skipBlankLines: true, skipComments: true }],
      'no-console': 'error',
      'no-restricted-globals': ['error', ...timers],
      'no-restricted-imports': [
        'error',
        {
          paths: ['timers', 'node:timers', 'node:timers/promises'].map((name) => ({ name, message: CLOCK })),
        },
      ],
      'no-restricted-syntax': ['error', ...nondeterminism],
    },
  },
  {
    files: ['packages/core/src/runtime/clock.ts', 'packages/core/src/runtime/random.ts'],
    rules: { 'no-restricted-globals': 'off', 'no-restricted-imports': 'off', 'no-restricted-syntax': 'off' },
  },
  {
    // Tests look at whatever comes back, often through `any`.
    files: ['**/test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/unbound-method': 'off',
    },
  },
);
