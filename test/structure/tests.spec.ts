import { unseededChance } from './support/impurity-rules.js';
import { parse, sample, testSources } from './support/source.js';
import { earlyEnds, idleTests, switchedTests } from './support/test-rules.js';

const files = testSources().map(parse);

describe('tests', () => {
  it('has no focused, skipped or planned tests', () => {
    expect(files.flatMap(switchedTests)).toEqual([]);
  });

  it('expects something in every one of them', () => {
    expect(files.flatMap(idleTests)).toEqual([]);
  });

  it('lets none of them end early', () => {
    expect(files.flatMap(earlyEnds)).toEqual([]);
  });

  it('draws chance from a seed alone', () => {
    expect(files.flatMap(unseededChance)).toEqual([]);
  });

  it.each([
    'await sleep(Math.random() * 3);',
    "Math['random']()",
    'Math!.random()',
    'crypto.randomFillSync(bytes)',
    'const { random } = Math;',
    'const M = Math;',
    "import { randomInt } from 'node:crypto';",
    'crypto.randomInt(3)',
    'crypto.getRandomValues(bytes)',
    'systemRandom.fraction()',
  ])('sees %s', (text) => expect(unseededChance(sample(text))).toHaveLength(1));

  it.each(['new SeededRandom(seed).fraction()', 'systemRandom.id()', 'Date.now()', 'Math.max(1, 2)'])(
    'accepts %s',
    (text) => expect(unseededChance(sample(text))).toEqual([]),
  );

  it.each([
    "it.only('x', f)",
    "describe.skip('x', f)",
    "it.todo('x')",
    "xit('x', f)",
    "it.skip.each([1])('x', f)",
    "it['skip']('x', f)",
    "xit.each([1])('x', f)",
    "xdescribe.each([1])('x', f)",
    "fit.each`a`('x', f)",
    "fdescribe.only('x', f)",
    "globalThis.it.skip('x', f)",
    "globalThis.xit('x', f)",
    "global.describe.only('x', f)",
    "(it).skip('x', f)",
    "if (process.env.X) it('x', f);",
    "if (server) { describe('x', () => { g(); }); }",
    "if (server) g(); else test.each([1])('x', f);",
    "server && it('x', f);",
    "server ? it('x', f) : g();",
    "switch (server) { case 1: it('x', f); }",
    'const other = it;',
    "import { it as other } from '@jest/globals';",
    'const { skip } = it;',
    'const { skip: later } = test;',
    'const maybe = process.env.X ? it : it.skip;',
  ])('sees %s', (text) => expect(switchedTests(sample(text))).toHaveLength(1));

  it('lets a contract suite have the function that reports a case as skipped', () => {
    expect(switchedTests(sample('describeLockBackend({ skip: it.skip })'))).toEqual([]);
  });

  it.each([
    "it('x', () => {})",
    "test.each([1])('x', async () => { await call(); })",
    "it('x', () => { expect(true); })",
    "it('x', () => { expect.assertions(0); })",
    "const body = () => {}; it('x', body)",
    "function body() {} it.each([1])('x', body, 5)",
    "it('x', () => { if (server) expect(1).toBe(1); })",
    "it('x', () => { if (server) { expect(1).toBe(1); } else { call(); } })",
  ])('sees that %s is idle', (text) => expect(idleTests(sample(text))).toHaveLength(1));

  it.each([
    "it('x', () => expect(1).toBe(1))",
    "function holds() { expect(1).toBe(1); } it('x', () => { holds(); })",
    "it('x', async () => { await expectLost(lock); })",
    "const body = () => expect(1).toBe(1); it('x', body)",
    "import { body } from './support/body.js'; it('x', body)",
    "it('x', () => { if (server) expect(1).toBe(1); else expect(1).toBe(2); })",
    "it('x', () => { if (server) expect(1).toBe(1); expect(2).toBe(2); })",
  ])('sees that %s is not', (text) => expect(idleTests(sample(text))).toEqual([]));

  it('sees a test that ends before it expects anything', () => {
    const text = "it('x', () => { if (!server) return; expect(1).toBe(1); })";
    expect(earlyEnds(sample(text))).toHaveLength(1);
  });

  it('sees a description that ends before its tests', () => {
    const text = "describe('x', () => { if (!server) return; it('y', () => { expect(1).toBe(1); }); })";
    expect(earlyEnds(sample(text))).toHaveLength(1);
  });
});
