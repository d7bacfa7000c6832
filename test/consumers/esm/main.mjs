// An ESM application that uses the published packages.
import assert from 'node:assert/strict';
import { createGuard, GuardError, memoryLocks } from '@guard/core';
import { startTcpProxy } from '@guard/testing';
import { startRedis } from '@guard/testing/servers';

assert.equal(typeof startTcpProxy, 'function');
assert.equal(typeof startRedis, 'function');
const guard = createGuard({ locks: memoryLocks(), namespace: 'consumer' });
const lock = await guard.acquire('k');
assert.equal(await guard.tryAcquire('k'), null);
assert.equal(await lock.release(), 'released');
await assert.rejects(guard.acquire(''), (error) => GuardError.is(error, 'invalid-argument'));
await guard.close();
console.log('esm: ok');
