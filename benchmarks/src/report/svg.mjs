// The few pieces of SVG that all charts are made of: scales, axes, a legend, and one colour for each contender. Every mark
// has the class `mark` and a title with its numbers, so that a browser shows them, and a test can count what is to be seen.

export const WIDTH = 760;
const LEFT = 64;
const RIGHT = 16;
const TOP = 10;
const BOTTOM = 36;

/** Guard stands out, what is bare is grey, and the others are told apart. */
const COLOURS = [
  '#1f77b4',
  '#2ca02c',
  '#9467bd',
  '#8c564b',
  '#e377c2',
  '#17becf',
  '#bcbd22',
  '#ff7f0e',
  '#393b79',
];

export function colourOf(contender, all) {
  if (contender === 'guard') return '#d62728';
  if (contender === 'raw') return '#7f7f7f';
  const others = all.filter((name) => name !== 'guard' && name !== 'raw');
  return COLOURS[others.indexOf(contender) % COLOURS.length];
}

export function escape(text) {
  return String(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** A scale from values to pixels; a logarithm where values differ by much. */
export function scale(values, [from, to], { log = false, zero = false } = {}) {
  const finite = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  let [low, high] = [Math.min(...finite), Math.max(...finite)];
  if (finite.length === 0) [low, high] = log ? [1, 10] : [0, 1];
  if (zero) low = Math.min(0, low);
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low, high + (Math.abs(high) || 1)];
  const f = log ? Math.log10 : (value) => value;
  const at = (value) =>
    from + ((f(Math.max(value, log ? low : -Infinity)) - f(low)) / (f(high) - f(low))) * (to - from);
  return Object.assign(at, { ticks: log ? logTicks(low, high) : ticks(low, high) });
}

function ticks(low, high) {
  const step = 10 ** Math.floor(Math.log10((high - low) / 4));
  const size = [1, 2, 5, 10].map((n) => n * step).find((each) => (high - low) / each <= 6) ?? step * 10;
  const first = Math.ceil(low / size);
  return Array.from({ length: Math.floor(high / size) - first + 1 }, (_, n) => (first + n) * size);
}

function logTicks(low, high) {
  const first = Math.floor(Math.log10(low));
  const powers = Array.from({ length: Math.ceil(Math.log10(high)) - first + 1 }, (_, n) => 10 ** (first + n));
  const fine = powers.length > 3 ? powers : powers.flatMap((power) => [power, 2 * power, 5 * power]);
  const inside = fine.filter((value) => value >= low && value <= high);
  return inside.length > 0 ? inside : [low, high];
}

/** The frame of a chart with two axes; `marks(x, y)` draws what is inside. */
export function plot({ height = 260, xs, ys, xLabel, yLabel, xLog, yLog, yZero, marks }) {
  const x = scale(xs, [LEFT, WIDTH - RIGHT], { log: xLog });
  const y = scale(ys, [height - BOTTOM, TOP], { log: yLog, zero: yZero });
  const vertical = y.ticks.map(
    (value) =>
      `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${n(y(value))}" y2="${n(y(value))}"/>` +
      `<text class="tick" text-anchor="end" x="${LEFT - 6}" y="${n(y(value) + 4)}">${number(value)}</text>`,
  );
  const horizontal = x.ticks.map(
    (value) =>
      `<text class="tick" text-anchor="middle" x="${n(x(value))}" y="${height - BOTTOM + 16}">${number(value)}</text>`,
  );
  const labels =
    `<text class="label" text-anchor="middle" x="${(LEFT + WIDTH) / 2}" y="${height - 4}">${escape(xLabel)}</text>` +
    `<text class="label" transform="translate(12 ${height / 2}) rotate(-90)" text-anchor="middle">${escape(yLabel)}</text>`;
  return svg(height, [...vertical, ...horizontal, labels, marks(x, y)].join(''));
}

export function svg(height, inside) {
  return `<svg viewBox="0 0 ${WIDTH} ${height}" role="img">${inside}</svg>`;
}

export function mark(shape, attributes, title) {
  const text = Object.entries(attributes)
    .map(([name, value]) => `${name}="${typeof value === 'number' ? n(value) : escape(value)}"`)
    .join(' ');
  return `<${shape} class="mark" ${text}><title>${escape(title)}</title></${shape}>`;
}

export function legend(contenders) {
  const entries = contenders.map(
    (name) => `<span><i style="background:${colourOf(name, contenders)}"></i>${escape(name)}</span>`,
  );
  return `<p class="legend">${entries.join('')}</p>`;
}

/** A chart with its caption. `kind` names what it is, for whoever looks for it. */
export function figure({ kind, title, caption, body }) {
  const count = body.split('class="mark"').length - 1;
  return `<figure data-chart="${kind}" data-marks="${count}"><h3>${escape(title)}</h3>${body}<figcaption>${escape(caption)}</figcaption></figure>`;
}

function n(value) {
  return Math.round(value * 100) / 100;
}

function number(value) {
  if (value === 0) return '0';
  return Math.abs(value) >= 10_000 ? `${value / 1_000}k` : String(Number(value.toPrecision(2)));
}
