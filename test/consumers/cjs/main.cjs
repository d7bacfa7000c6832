// A CommonJS application that uses the published packages.
const assert = require('node:assert/strict');
const { createGuard, currentLock, GuardError, kvRuns, memoryLocks, memoryState } = require('@guard/core');

async function main() {
  const state = memoryState();
  const guard = createGuard({ locks: memoryLocks(), state, runs: kvRuns(state), namespace: 'consumer' });
  await guard.withLock('k', async (lock) => {
    assert.equal(lock.isHeld(), true);
    assert.equal(currentLock()?.token, lock.token);
  });
  const times = [];
  const settle = () => guard.run('settle', { key: '2026-11-29' }, async () => times.push('run'));
  assert.equal((await settle()).status, 'completed');
  assert.equal((await settle()).status, 'skipped');
  assert.equal(times.length, 1, 'once');
  await assert.rejects(guard.acquire(''), (error) => GuardError.is(error, 'invalid-argument'));
  await guard.close();
  console.log('came to its end');
}

main();
