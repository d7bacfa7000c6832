// The layers of the code, and what each package may know.

const CORE = '^packages/core/src/';
const ADAPTERS_IN_CORE = ['memory', 'kv', 'quorum'];

/** A folder of core may know only the folders named here; everything else inside core is refused. */
const layers = {
  value: ['value'],
  machine: ['value', 'machine'],
  port: ['value', 'machine', 'port'],
  api: ['value', 'machine', 'port', 'api'],
  runtime: ['value', 'machine', 'port', 'api', 'runtime'],
  facade: ['value', 'machine', 'port', 'api', 'runtime', 'facade', ...ADAPTERS_IN_CORE],
  decorator: ['value', 'machine', 'port', 'api', 'runtime', 'facade', 'decorator'],
};
for (const adapter of ADAPTERS_IN_CORE) layers[adapter] = ['value', 'machine', 'port', ...ADAPTERS_IN_CORE];

/** The system's clock and chance are every adapter's defaults, in core as outside. */
const DEFAULTS = `${CORE}runtime/(clock|random)\\.ts$`;

const layerRules = Object.entries(layers).map(([folder, allowed]) => ({
  name: `core-layer-${folder}`,
  comment: `packages/core/src/${folder} may know only: ${allowed.join(', ')}.`,
  severity: 'error',
  from: { path: `${CORE}${folder}/` },
  to: {
    path: CORE,
    pathNot: [`${CORE}(${allowed.join('|')})/`, ...(ADAPTERS_IN_CORE.includes(folder) ? [DEFAULTS] : [])],
  },
}));

/** What each package may import from outside its own folder, besides Node's own modules. */
const foreign = {
  core: ['cockatiel', 'croner'],
  testing: ['@guard/core', 'testcontainers'],
  typeorm: ['@guard/core', 'typeorm', 'better-sqlite3'],
  redis: ['@guard/core'],
  etcd: ['@guard/core', 'etcd3'],
  nestjs: ['@guard/core', '@nestjs/common', '@nestjs/core'],
};

const foreignRules = Object.entries(foreign).map(([name, allowed]) => ({
  name: `imports-of-${name}`,
  comment: `The sources of packages/${name} may import only Node's own modules and: ${allowed.join(', ')}.`,
  severity: 'error',
  from: { path: `^packages/${name}/src/` },
  to: {
    dependencyTypesNot: ['core'],
    pathNot: [`^packages/${name}/src/`, ...allowed.map(moduleFolder)],
  },
}));

/** Where an import of this name ends up: a sibling's barrel, or a folder of node_modules (or its types). */
function moduleFolder(name) {
  if (name.startsWith('@guard/')) return `^packages/${name.slice('@guard/'.length)}/src/index\\.ts$`;
  return `node_modules/(@types/)?${name}/`;
}

module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      comment: 'Modules that import each other cannot be read, or loaded, one at a time. Types count too.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-unresolvable',
      comment: 'This import leads nowhere.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-undeclared',
      comment: 'This package is not in the package.json of the folder that imports it.',
      severity: 'error',
      from: { path: '^packages/[^/]+/src/' },
      to: {
        dependencyTypes: ['npm-no-pkg', 'npm-unknown', 'npm-dev'],
        // An optional peer carries both marks.
        dependencyTypesNot: ['npm', 'npm-peer'],
      },
    },
    ...layerRules,
    {
      name: 'core-layer-unknown',
      comment: 'Every folder of packages/core/src is a layer: name it, and what it may know, in this file.',
      severity: 'error',
      from: { path: CORE, pathNot: `${CORE}(index\\.ts$|(${Object.keys(layers).join('|')})/)` },
      to: {},
    },
    ...foreignRules,
    {
      name: 'pure-inside',
      comment: 'machine/ and port/ hold decisions and types: no module from outside, not even Node’s own.',
      severity: 'error',
      from: { path: `${CORE}(machine|port)/` },
      to: { pathNot: CORE },
    },
    {
      name: 'value-is-plain',
      comment: 'value/ holds plain values; hashing is the only thing it takes from Node.',
      severity: 'error',
      from: { path: `${CORE}value/` },
      to: { pathNot: [CORE, '^(node:)?crypto$'] },
    },
    {
      name: 'barrel-is-for-others',
      comment: 'Inside a package, import the file that has the name, not the barrel.',
      severity: 'error',
      from: { path: '^packages/([^/]+)/src/' },
      to: { path: '^packages/$1/src/index\\.ts$' },
    },
    {
      name: 'no-deep-imports',
      comment:
        'A package reaches another one through its barrel only, or through that of a subpath it exports.',
      severity: 'error',
      from: { path: '^packages/([^/]+)/' },
      to: {
        path: '^packages/([^/]+)/',
        pathNot: [
          '^packages/$1/',
          '^packages/[^/]+/src/index\\.ts$',
          '^packages/testing/src/servers/index\\.ts$',
          '^packages/redis/src/(ioredis|node-redis)\\.ts$',
        ],
      },
    },
    {
      name: 'sources-know-no-tests',
      comment: 'Library sources never import test code.',
      severity: 'error',
      from: { path: '^packages/[^/]+/src/' },
      to: { path: '(^|/)test/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(packages|examples)/[^/]+/dist/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.base.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['@guard/source', 'import', 'require', 'node', 'default', 'types'],
      extensions: ['.ts', '.js', '.mjs', '.cjs', '.json', '.d.ts'],
    },
  },
};
