// A scenario as tables: a line for each contender, a column for each metric, the median with the spread of the rounds.
import { METRICS } from '../rows.mjs';
import { cases, contendersOf, rowsWhere, short } from './look.mjs';

export function printScenario({ rows }, { backend, scenario }) {
  for (const { text, rows: own } of cases(rowsWhere(rows, { backend, scenario }))) {
    console.log(`\n${scenario}, ${backend}${text === '' ? '' : `, ${text}`}`);
    console.log(tableOf(own));
  }
}

/** The table as text. */
export function tableOf(rows) {
  const metrics = Object.keys(METRICS).filter((metric) => rows.some((row) => row.metric === metric));
  const lines = contendersOf(rows).map((contender) => [
    contender,
    ...metrics.map((metric) => cell(rowsWhere(rows, { contender, metric })[0])),
  ]);
  const table = [['', ...metrics], ...lines];
  const widths = table[0].map((_, column) => Math.max(...table.map((line) => line[column].length)));
  return table
    .map(
      (line) =>
        `  ${line.map((text, n) => (n === 0 ? text.padEnd(widths[n]) : text.padStart(widths[n]))).join('  ')}`,
    )
    .join('\n');
}

function cell(row) {
  if (row === undefined) return '-';
  return row.n === 1 || row.min === row.max
    ? short(row.value)
    : `${short(row.value)} (${short(row.min)}…${short(row.max)})`;
}
