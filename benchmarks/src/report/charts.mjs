// The charts of a report, each from rows or from what a scenario drew beside them.
import { cases, contendersOf, paramsText, rowsWhere, short } from './look.mjs';
import { colourOf, escape, figure, legend, mark, plot, svg, WIDTH } from './svg.mjs';

/** All charts of a backend, in the order in which they are read. */
export function chartsOf({ rows, series }, backend) {
  const own = {
    rows: rowsWhere(rows, { backend }),
    series: series.filter((each) => each.backend === backend),
  };
  return [latency(own), throughput(own), ...handovers(own), ...expiry(own), holding(own), runs(own)].filter(
    Boolean,
  );
}

function latency({ series }) {
  const lines = series.filter(({ chart }) => chart === 'latency');
  if (lines.length === 0) return undefined;
  const names = lines.map(({ contender }) => contender);
  const shareOf = (index, { quantiles }) => (index / (quantiles.length - 1)) * 100;
  const body = plot({
    xs: [0, 100],
    ys: lines.flatMap(({ quantiles }) => quantiles),
    yLog: true,
    xLabel: '% of the pairs took at most',
    yLabel: 'ms',
    marks: (x, y) =>
      lines
        .map((line) => {
          const points = line.quantiles.map((ms, index) => `${x(shareOf(index, line))},${y(ms)}`).join(' ');
          const stroke = colourOf(line.contender, names);
          const middle = line.quantiles[line.quantiles.length >> 1];
          return mark(
            'polyline',
            { points, stroke, fill: 'none' },
            `${line.contender}: p50 ${short(middle)} ms`,
          );
        })
        .join(''),
  });
  return figure({
    ...{ kind: 'latency', title: 'Latency of a lone pair', body: legend(names) + body },
    caption:
      'Acquire and release with nobody else there: at each share of the pairs the median of the rounds.',
  });
}

function throughput({ rows }) {
  const own = rowsWhere(rows, { scenario: 'throughput', metric: 'pairs_per_s' }).filter(
    ({ params }) => Object.keys(params).length === 1,
  );
  if (own.length === 0) return undefined;
  const names = contendersOf(own);
  const body = plot({
    xs: own.map(({ params }) => params.concurrency),
    ys: own.flatMap(({ min, max }) => [min, max]),
    ...{ xLog: true, yLog: true, xLabel: 'keys at once', yLabel: 'pairs/s' },
    marks: (x, y) =>
      names.map((name) => speeds(name, names, rowsWhere(own, { contender: name }), x, y)).join(''),
  });
  return figure({
    ...{ kind: 'throughput', title: 'Throughput against concurrency', body: legend(names) + body },
    caption:
      'One process, each key its own. Lines join the medians of the rounds; whiskers show their spread.',
  });
}

function speeds(name, names, rows, x, y) {
  const stroke = colourOf(name, names);
  const points = rows.map(({ params, value }) => `${x(params.concurrency)},${y(value)}`).join(' ');
  const whiskers = rows.map(({ params, value, min, max }) =>
    mark(
      'line',
      { x1: x(params.concurrency), x2: x(params.concurrency), y1: y(min), y2: y(max) - 0.5, stroke },
      `${name}, ${params.concurrency} at once: ${short(value)} pairs/s (${short(min)}…${short(max)})`,
    ),
  );
  return `<polyline points="${points}" stroke="${stroke}" fill="none"/>${whiskers.join('')}`;
}

function handovers({ series }) {
  const all = series.filter(({ chart }) => chart === 'handover');
  return cases(all).flatMap(({ text, rows }) => [handoverLines(text, rows), fairness(text, rows)]);
}

/** A strip for each contender: a row for each waiter, and a bar while it holds the lock. */
function handoverLines(text, strips) {
  const names = strips.map(({ contender }) => contender);
  const until = Math.max(1, ...strips.flatMap(({ line }) => line.map(([, , to]) => to)));
  const body = strips.map(({ contender, line, params }) => {
    const high = 3;
    const x = (ms) => 150 + (ms / until) * (WIDTH - 160);
    const bars = line.map(([waiter, from, to]) =>
      mark(
        'rect',
        {
          x: x(from),
          width: Math.max(1, x(to) - x(from)),
          y: 4 + waiter * high,
          height: high - 0.5,
          fill: colourOf(contender, names),
        },
        `${contender}: waiter ${waiter}, ${from}–${to} ms`,
      ),
    );
    const none = line.length > 0 ? '' : '<text class="tick" x="156" y="16">nobody had it</text>';
    const label = `<text class="tick" x="0" y="16">${escape(contender)}</text>${none}`;
    return svg(
      params.waiters * high + 8,
      `<rect class="ground" x="150" y="2" width="${WIDTH - 160}" height="${params.waiters * high + 4}"/>${label}${bars.join('')}`,
    );
  });
  return figure({
    ...{ kind: 'handover', title: `Hand-overs, ${text}`, body: body.join('') },
    caption: `The first ${Math.round(until)} ms of a round: a row for each waiter, a bar while it holds the lock. White between bars is time in which nobody held it.`,
  });
}

function fairness(text, strips) {
  const names = strips.map(({ contender }) => contender);
  const largest = Math.max(1, ...strips.flatMap(({ grants }) => grants));
  const body = strips.map(({ contender, grants }) => {
    const sorted = [...grants].sort((a, b) => b - a);
    const wide = (WIDTH - 160) / sorted.length;
    const bars = sorted.map((count, index) => {
      const height = Math.max(0.5, (count / largest) * 40);
      const place = { x: 150 + index * wide, width: wide - 1, y: 44 - height, height };
      return mark('rect', { ...place, fill: colourOf(contender, names) }, `${contender}: ${count} times`);
    });
    return svg(48, `<text class="tick" x="0" y="26">${escape(contender)}</text>${bars.join('')}`);
  });
  return figure({
    ...{ kind: 'fairness', title: `How often each waiter had the lock, ${text}`, body: body.join('') },
    caption:
      'A bar for each waiter, the luckiest first, in one round. Where all are equally high the queue is fair.',
  });
}

function expiry({ series }) {
  const all = series.filter(({ chart }) => chart === 'expiry');
  return cases(all).map(({ text, rows }) => {
    const from = Math.min(...rows.flatMap(({ holder }) => holder.flat()), 0);
    const until = Math.max(...rows.map((each) => each.until));
    const x = (ms) => 150 + ((Math.min(ms, until) - from) / (until - from)) * (WIDTH - 160);
    return figure({
      ...{
        kind: 'expiry',
        title: `${rows[0].what} (${text})`,
        body: rows.map((each) => beliefs(each, x)).join(''),
      },
      caption: `Who believed to hold the lock, from ${from} to ${until} ms around the fault (the thin line): above the old holder, below the next; red where both did.`,
    });
  });
}

function beliefs({ contender, holder, next, lost, back }, x) {
  const bar = (spans, y, fill, who) =>
    spans.map(([from, to]) =>
      mark(
        'rect',
        { x: x(from), width: Math.max(1, x(to) - x(from)), y, height: 9, fill },
        `${contender}, ${who}: ${from} to ${to} ms`,
      ),
    );
  const both = holder.flatMap(([from, to]) =>
    next
      .map(([otherFrom, otherTo]) => [Math.max(from, otherFrom), Math.min(to, otherTo)])
      .filter(([a, b]) => b > a),
  );
  const line = (at, kind) =>
    at === undefined ? '' : `<line class="${kind}" x1="${x(at)}" x2="${x(at)}" y1="0" y2="26"/>`;
  return svg(
    28,
    [
      `<text class="tick" x="0" y="17">${escape(contender)}</text>${line(0, 'fault')}${line(back, 'back')}${line(lost, 'lost')}`,
      ...bar(holder, 3, '#4c78a8', 'the holder'),
      ...bar(next, 14, '#72b7b2', 'the next'),
      ...both.map(([from, to]) =>
        mark(
          'rect',
          { x: x(from), width: Math.max(1.5, x(to) - x(from)), y: 3, height: 20, fill: '#d62728' },
          `${contender}: both from ${from} to ${to} ms`,
        ),
      ),
    ].join(''),
  );
}

const COSTS = ['ops_per_s', 'server_cpu_pct', 'client_cpu_pct', 'bytes_per_lock'];

function holding({ rows }) {
  return bars({
    ...{
      kind: 'hold',
      title: 'Cost of holding',
      metrics: COSTS,
      rows: rowsWhere(rows, { scenario: 'hold' }),
    },
    caption:
      'While nothing is asked for: operations at the server, processor time of server and process, memory of the process for each lock.',
  });
}

function runs({ rows }) {
  return bars({
    ...{ kind: 'run', title: 'Single runs', metrics: ['run_p50_ms', 'runs_per_s', 'trips_per_run'] },
    rows: rowsWhere(rows, { scenario: 'run' }),
    caption:
      'Work that does nothing, under a key that is done once. Queues and workflow engines do the nearest thing, said below.',
  });
}

/** A bar for each contender and case, metric by metric. */
function bars({ kind, title, caption, metrics, rows }) {
  const names = contendersOf(rows);
  const body = metrics.flatMap((metric) => {
    const own = rowsWhere(rows, { metric });
    if (own.length === 0) return [];
    const largest = Math.max(...own.map(({ max }) => max), 1e-9);
    const lines = own.map((row, index) => {
      const y = 22 + index * 16;
      const width = Math.max(1, (row.value / largest) * (WIDTH - 420));
      const what = `${row.contender}${paramsText(row.params) === '' ? '' : `, ${paramsText(row.params)}`}`;
      return (
        `<text class="tick" x="0" y="${y + 9}">${escape(what)}</text>` +
        mark(
          'rect',
          { x: 340, y, width, height: 11, fill: colourOf(row.contender, names) },
          `${what}: ${short(row.value)} ${row.unit}`,
        ) +
        `<text class="tick" x="${346 + width}" y="${y + 9}">${short(row.value)}</text>`
      );
    });
    return [
      svg(
        30 + own.length * 16,
        `<text class="label" x="0" y="12">${metric} (${own[0].unit})</text>${lines.join('')}`,
      ),
    ];
  });
  return body.length === 0 ? undefined : figure({ kind, title, caption, body: body.join('') });
}
