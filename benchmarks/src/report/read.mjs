// Reads a report that `--json` wrote.
import { readFileSync } from 'node:fs';
import { faultsIn } from '../rows.mjs';

export function readReport(file) {
  const report = JSON.parse(readFileSync(file, 'utf8'));
  const [fault] = faultsIn(report);
  if (fault !== undefined) throw new Error(`${file}: ${fault}`);
  return report;
}
