// An ESM application that uses the published packages.
import assert from 'node:assert/strict';
import { createGuard, GuardError, memoryLocks, memoryState } from '@guard/core';
import { startTcpProxy } from '@guard/testing';
import { startRedis } from '@guard/testing/servers';

assert.equal(typeof startTcpProxy, 'function');
assert.equal(typeof startRedis, 'function');
const guard = createGuard({ locks: memoryLocks(), state: memoryState(), namespace: 'consumer' });
const lock = await guard.acquire('k');
assert.equal(await guard.tryAcquire('k'), null);
assert.equal(await lock.release(), 'released');
const version = await guard.state.create('rate:EUR', 1);
assert.notEqual(await guard.state.update('rate:EUR', version, 2), null);
assert.equal(await guard.state.update('rate:EUR', version, 3), null, 'somebody was faster');
await assert.rejects(guard.acquire(''), (error) => GuardError.is(error, 'invalid-argument'));
await guard.close();
console.log('came to its end');
