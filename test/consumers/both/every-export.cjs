// Every subpath of every published package, loaded as CommonJS and as ESM: both builds export the same names.
// The subpaths come as arguments.
const assert = require('node:assert/strict');

async function main(specifiers) {
  assert.notEqual(specifiers.length, 0);
  for (const specifier of specifiers) {
    const required = require(specifier);
    const imported = await import(specifier);
    assert.notEqual(Object.keys(imported).length, 0, `${specifier} exports something`);
    assert.deepEqual(Object.keys(required).sort(), Object.keys(imported).sort(), specifier);
    for (const [name, value] of Object.entries(required)) {
      if (typeof value === 'function') assert.notEqual(value, imported[name], `${name} exists twice`);
    }
  }
  console.log('came to its end');
}

main(process.argv.slice(2));
