/* global expect, jest */
// Tests on the real time share a machine with others: on a busy one a case can be late without a defect. In CI such a
// case is played a second time, and both outcomes are printed; what fails twice fails. Tests with the time in hand get
// no second chance: they cannot be late.
const REAL_TIME =
  /packages\/(etcd|typeorm|redis|nestjs)\/test\/|core\/test\/contract|\/test\/(process|servers|smoke|fault)\/|\/examples\//;

if (process.env.CI && REAL_TIME.test(expect.getState().testPath ?? '')) {
  jest.retryTimes(1, { logErrorsBeforeRetry: true });
}
