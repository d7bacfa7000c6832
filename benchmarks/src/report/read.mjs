// Reads a report that `--json` wrote. Whatever else the file is, is said with its name.
import { readFileSync } from 'node:fs';
import { faultsIn } from '../rows.mjs';

export function readReport(file) {
  const report = parsed(file);
  const isReport = typeof report === 'object' && report !== null && Array.isArray(report.rows);
  const fault = isReport ? faultsIn(report)[0] : 'it has no rows';
  if (fault !== undefined) throw new Error(`--compare: '${file}' is no report: ${fault}`);
  return report;
}

function parsed(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') throw new Error(`--compare: there is no file '${file}'`, { cause: error });
    throw new Error(`--compare: '${file}' cannot be read: ${error.message}`, { cause: error });
  }
}
