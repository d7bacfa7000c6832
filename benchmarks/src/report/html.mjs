// The report as one file that needs nothing else: charts, targets, and every number below them.
import { chartsOf } from './charts.mjs';
import { cases, rowsWhere } from './look.mjs';
import { escape } from './svg.mjs';
import { tableOf } from './tables.mjs';
import { shown, verdictsOf } from './targets.mjs';

const STYLE = `
  body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 800px; margin: 2rem auto; padding: 0 1rem }
  h2 { border-bottom: 1px solid #ccc; margin-top: 3rem } h3 { margin: 0 0 .3rem; font-size: 1rem }
  figure { margin: 1.5rem 0; } figcaption { color: #555; font-size: .85rem } svg { width: 100%; height: auto; display: block }
  .grid { stroke: #e5e5e5 } .tick { font: 11px sans-serif; fill: #555 } .label { font: 12px sans-serif; fill: #222 }
  .ground { fill: #fafafa; stroke: #eee } .fault { stroke: #999 } .back { stroke: #999; stroke-dasharray: 2 2 }
  .lost { stroke: #d62728; stroke-dasharray: 2 2 } polyline.mark { stroke-width: 1.8 } line.mark { stroke-width: 3 }
  .legend { margin: 0 } .legend span { margin-right: 1rem; white-space: nowrap } .legend i { display: inline-block; width: .8em; height: .8em; margin-right: .3em }
  .met { color: #2a7d2a } .missed { color: #c22 } pre { overflow-x: auto; font-size: 12px } td { padding-right: 1rem; vertical-align: top }`;

export function htmlOf(report) {
  const { machine, rows, series, notes = [], versions, quick } = report;
  const backends = [...new Set(rows.map(({ backend }) => backend))];
  const kind = quick ? 'A quick run: it shows the shape, not figures to quote.' : 'A full run.';
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Guard benchmarks</title>
<style>${STYLE}</style>
<h1>Guard benchmarks</h1>
<p>${escape(kind)} ${escape(machine.cores)} cores, ${escape(machine.cpu)}, ${escape(machine.platform)} ${escape(machine.release ?? '')}; seed ${report.seed}.
Numbers are medians of rounds in which all contenders had their turns; the ratios between them say more than they do.</p>
${targets(report)}
${notes.length === 0 ? '' : `<h2>Notes</h2><ul>${notes.map((note) => `<li>${escape(note)}</li>`).join('')}</ul>`}
${backends.map((backend) => section({ rows, series }, backend)).join('')}
<h2>Versions</h2><table>${Object.entries(versions)
    .map(([name, version]) => `<tr><td>${escape(name)}<td>${escape(version)}`)
    .join('')}</table></html>
`;
}

function targets(report) {
  const verdicts = verdictsOf(report);
  if (verdicts.length === 0) return '';
  const lines = verdicts.map(
    ({ text, value, sign, limit, met }) =>
      `<tr class="${met ? 'met' : 'missed'}"><td>${met ? 'met' : 'missed'}<td>${escape(text)}<td>${shown(value)} ${escape(sign)} ${shown(limit)}`,
  );
  return `<h2>Targets</h2><table>${lines.join('')}</table>`;
}

function section({ rows, series }, backend) {
  const compared = series.filter((each) => each.chart === 'compares' && each.backend === backend);
  const own = rowsWhere(rows, { backend });
  const scenarios = [...new Set(own.map(({ scenario }) => scenario))];
  const tables = scenarios.flatMap((scenario) =>
    cases(rowsWhere(own, { scenario })).map(
      (each) =>
        `<h3>${escape([scenario, each.text].filter(Boolean).join(', '))}</h3><pre>${escape(tableOf(each.rows))}</pre>`,
    ),
  );
  return `<h2>${escape(backend)}</h2>${chartsOf({ rows, series }, backend).join('')}
${compared.length === 0 ? '' : `<h3>What a run is compared with</h3><ul>${compared.map(({ contender, text }) => `<li><b>${escape(contender)}</b>: ${escape(text)}</li>`).join('')}</ul>`}
<details><summary>All numbers of ${escape(backend)}</summary>${tables.join('')}</details>`;
}
