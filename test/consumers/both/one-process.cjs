// Both builds in one process, as in a CommonJS application that uses an ESM library which uses Guard too: each sees
// the other's ambient lock and run, knows its errors, and serves the methods that the other decorated.
const assert = require('node:assert/strict');
const cjs = require('@guard/core');

async function main() {
  const esm = await import('@guard/core');
  assert.notEqual(esm.GuardError, cjs.GuardError, 'two copies');
  for (const [here, there] of [
    [cjs, esm],
    [esm, cjs],
  ]) {
    await seesTheAmbientLockAndRun(here, there);
    await knowsTheErrors(here, there);
    await servesByTheDefaultGuard(here, there);
    await servesByABoundGuard(here, there);
  }
  console.log('came to its end');
}

async function seesTheAmbientLockAndRun(here, there) {
  const guard = newGuard(here);
  await guard.withLock('k', async (lock) => {
    assert.equal(there.currentLock()?.token, lock.token);
    // The other copy's guard on the same backend knows that waiting for this lock would never end.
    await assert.rejects(guard.acquire('k'), (error) => there.GuardError.is(error, 'would-deadlock'));
  });
  assert.equal(there.currentLock(), undefined);
  await guard.run('settle', {}, async (run) => assert.equal(there.currentRun().id, run.id));
  await guard.close();
}

async function knowsTheErrors(here, there) {
  const guard = newGuard(here);
  const error = await guard.acquire('').catch((caught) => caught);
  assert.equal(here.GuardError.is(error, 'invalid-argument'), true);
  assert.equal(there.GuardError.is(error, 'invalid-argument'), true);
  assert.equal(there.GuardError.is(error, 'lock-busy'), false);
  assert.equal(error instanceof Error, true);
  await guard.close();
  const closed = await guard.acquire('k').catch((caught) => caught);
  assert.equal(there.GuardError.is(closed, 'closed'), true);
}

/** `setDefaultGuard` of one copy serves a class that the other one decorated. */
async function servesByTheDefaultGuard(here, there) {
  const Billing = newClass(there);
  const billing = new Billing();
  await assert.rejects(billing.settle(), (error) => here.GuardError.is(error, 'not-bound'));
  const guard = newGuard(here);
  here.setDefaultGuard(guard);
  await billing.settle();
  assert.deepEqual(billing.seen, { run: 'Billing.settle', lock: 'account:7' });
  there.setDefaultGuard(undefined);
  await assert.rejects(billing.settle(), (error) => here.GuardError.is(error, 'not-bound'));
  await guard.close();
}

async function servesByABoundGuard(here, there) {
  const billing = new (newClass(there))();
  const guard = newGuard(here);
  here.bindGuard(billing, guard);
  await billing.settle();
  assert.equal(billing.seen.lock, 'account:7');
  assert.deepEqual(
    here.guardedMethods(billing).map(({ key }) => key),
    there.guardedMethods(billing).map(({ key }) => key),
  );
  assert.equal(here.guardedMethods(billing).length, 2);
  await guard.close();
}

function newGuard({ createGuard, kvRuns, memoryLocks, memoryState }) {
  const state = memoryState();
  return createGuard({ locks: memoryLocks(), state, runs: kvRuns(state), namespace: 'consumer' });
}

/** A class as a compiler makes one of decorators: this file is JavaScript, which has none. */
function newClass({ currentLock, currentRun, Locked, SingleRun }) {
  class Billing {
    async settle() {
      await this.book('7');
      this.seen = { ...this.seen, run: currentRun().task };
    }
    async book() {
      this.seen = { lock: currentLock().key };
    }
  }
  decorate(Billing, 'settle', SingleRun());
  decorate(Billing, 'book', Locked({ key: (id) => `account:${id}` }));
  return Billing;
}

function decorate({ prototype }, name, decorator) {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name);
  Object.defineProperty(prototype, name, decorator(prototype, name, descriptor) ?? descriptor);
}

main();
