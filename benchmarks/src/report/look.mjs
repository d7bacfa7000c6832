// Looking things up in rows, for tables, targets and charts.
import { ratioOf } from '../rounds.mjs';

/** Rows with these fields; `params` has to hold what is named, and may hold more. */
export function rowsWhere(rows, { params = {}, ...fields }) {
  return rows.filter(
    (row) =>
      Object.entries(fields).every(([name, value]) => row[name] === value) &&
      Object.entries(params).every(([name, value]) => row.params[name] === value),
  );
}

/** The different params of these rows, in their order, as `{ text, params, rows }`. */
export function cases(rows) {
  const found = new Map();
  for (const row of rows) {
    const text = paramsText(row.params);
    if (!found.has(text)) found.set(text, { text, params: row.params, rows: [] });
    found.get(text).rows.push(row);
  }
  return [...found.values()];
}

export function paramsText(params) {
  return Object.entries(params)
    .map(([name, value]) =>
      name === 'fault' ? value : value === true ? words(name) : `${words(name)} ${value}`,
    )
    .join(', ');
}

function words(name) {
  return name.replace(/Ms$/, ' ms').replaceAll(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** How many times `ours` is `theirs`: the median over the rounds where both have them. */
export function timesOf(ours, theirs) {
  if (ours.value === theirs.value) return 1;
  return ours.rounds?.length === theirs.rounds?.length && ours.rounds !== undefined
    ? (ratioOf(ours.rounds, theirs.rounds) ?? ours.value / theirs.value)
    : ours.value / theirs.value;
}

export function contendersOf(rows) {
  return [...new Set(rows.map(({ contender }) => contender))];
}

/** Three digits that matter. */
export function short(value) {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1_000) return Math.round(value).toLocaleString('en').replaceAll(',', ' ');
  return size >= 100
    ? value.toFixed(0)
    : size >= 10
      ? value.toFixed(1)
      : size >= 1
        ? value.toFixed(2)
        : value.toFixed(3);
}
