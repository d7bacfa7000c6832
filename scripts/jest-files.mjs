// A reporter of jest: writes down each file that ran, with its project and its numbers. What jest's own JSON says does not
// name the project.
import { writeFileSync } from 'node:fs';

export default class Files {
  onRunComplete(_contexts, { testResults, numRuntimeErrorTestSuites, numTodoTests }) {
    const files = testResults.map((file) => ({
      path: file.testFilePath,
      project: file.displayName?.name,
      passed: file.numPassingTests,
      failed: file.numFailingTests,
      skipped: file.numPendingTests,
    }));
    const answer = { files, broken: numRuntimeErrorTestSuites, planned: numTodoTests };
    writeFileSync(process.env.GUARD_JEST_FILES, JSON.stringify(answer));
  }
}
