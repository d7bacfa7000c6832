// A CommonJS application that uses the published packages, and loads their ESM builds beside: both copies must see
// each other's ambient lock and errors.
const assert = require('node:assert/strict');
const core = require('@guard/core');
const testing = require('@guard/testing');
const servers = require('@guard/testing/servers');

async function main() {
  assert.equal(typeof testing.describeLockBackend, 'function');
  assert.equal(typeof servers.startRedis, 'function');
  const esm = await import('@guard/core');
  assert.notEqual(esm.GuardError, core.GuardError, 'two copies');

  const guard = core.createGuard({ locks: core.memoryLocks(), namespace: 'consumer' });
  await guard.withLock('k', async (lock) => {
    assert.equal(lock.isHeld(), true);
    assert.equal(core.currentLock()?.token, lock.token);
    assert.equal(esm.currentLock()?.token, lock.token, 'the other copy sees the ambient lock');
  });
  const error = await guard.acquire('').catch((caught) => caught);
  assert.equal(core.GuardError.is(error, 'invalid-argument'), true);
  assert.equal(esm.GuardError.is(error, 'invalid-argument'), true, 'the other copy knows the error');
  await guard.close();
  console.log('cjs: ok');
}

main();
