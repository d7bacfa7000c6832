/**
 * What is wrong with a cron expression, in words that name the field, its value and what is allowed there. Asked only
 * about an expression that the parser has refused: it never decides what is accepted, it only says why something is not.
 */
import { show } from '../../value/error.js';

interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** What else the field takes, for people. */
  readonly also: string;
  /** Names that stand for numbers. */
  readonly names?: readonly string[];
  /** An entry that is neither a number, a range nor a step. */
  readonly special?: RegExp;
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const DAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];
const NICKNAMES = '@yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly';

const SECOND: Field = { name: 'second', min: 0, max: 59, also: '' };
const FIELDS: readonly Field[] = [
  { name: 'minute', min: 0, max: 59, also: '' },
  { name: 'hour', min: 0, max: 23, also: '' },
  {
    name: 'day of the month',
    min: 1,
    max: 31,
    also: ', L, LW, and a day with W (15W)',
    special: /^(L|LW|(0?[1-9]|[12]\d|3[01])W)$/i,
  },
  { name: 'month', min: 1, max: 12, also: ' and JAN to DEC', names: MONTHS },
  {
    name: 'day of the week',
    min: 0,
    max: 7,
    also: ', SUN to SAT, and one with # and 1 to 5 (5#2), or with L (5L)',
    names: DAYS,
    special: /^(0*[0-7]|SUN|MON|TUE|WED|THU|FRI|SAT)(#[1-5]|L)$/i,
  },
];

/** What the expression must be, for a message that ends with it. */
export function cronFault(expression: string): string {
  const text = expression.trim();
  if (text.startsWith('@'))
    return `must be a series of instants: of the names that begin with @ there are ${NICKNAMES}`;
  const parts = text === '' ? [] : text.split(/\s+/);
  if (parts.length !== 5 && parts.length !== 6) {
    const names = FIELDS.map(({ name }) => name).join(', ');
    return `must have five fields (${names}), or six with the second before them, not ${parts.length}`;
  }
  const fields = parts.length === 6 ? [SECOND, ...FIELDS] : FIELDS;
  for (const [place, field] of fields.entries()) {
    const fault = fieldFault(field, parts[place]!);
    if (fault !== undefined) return fault;
  }
  return `must be a cron expression: lists (1,2), ranges (1-5) and steps (*/5, 10-50/5) of what each field allows`;
}

function fieldFault(field: Field, part: string): string | undefined {
  // Only a day of the week may begin with it: then both days have to fit.
  const entries = (field.name === 'day of the week' ? part.replace(/^\+(?=.)/, '') : part).split(',');
  if (entries.length > 1 && entries.some((entry) => /^LW$/i.test(entry)))
    return `must have LW alone as its ${field.name}, not in a list (${show(part)})`;
  for (const entry of entries) {
    const fault = entryFault(field, entry);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function entryFault(field: Field, entry: string): string | undefined {
  const { name, min, max, also, special } = field;
  if (special?.test(entry)) return undefined;
  const allowed = `from ${min} to ${max}${also}`;
  const [, range = '', step] = /^([^/]*)(?:\/(.*))?$/s.exec(entry) ?? [];
  const ends =
    range === '*' || range === '?' ? [min, max] : range.split('-').map((end) => numberOf(field, end));
  const isNumber = step === undefined && /^\d+$/.test(range);
  const isNone = ends.length > 2 || ends.some((end) => !(end >= min && end <= max));
  if (isNone && !isRangeToSunday(field, range))
    return `must have ${isNumber ? `${name === 'hour' ? 'an' : 'a'} ${name}` : `values of the ${name}`} ${allowed}, not ${show(entry)}`;
  if (ends.length === 2 && ends[0]! > ends[1]! && !isRangeToSunday(field, range))
    return `must have ranges of the ${name} that go up, not ${show(entry)}`;
  if (step === undefined) return undefined;
  if (ends.length === 1)
    return `must have * or a range before the step of its ${name} (*/5, 10-50/5), not ${show(entry)}`;
  const size = name === 'day of the week' ? DAYS.length : max - min + 1;
  if (/^\d+$/.test(step) && Number(step) >= 1 && Number(step) <= size) return undefined;
  return `must have a step from 1 to ${size} in its ${name}, not ${show(entry)}`;
}

function numberOf({ min, names }: Field, text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  const place = names?.indexOf(text.toUpperCase()) ?? -1;
  return place < 0 ? NaN : place + min;
}

/** As the last day of a range Sunday comes after Saturday. */
function isRangeToSunday({ names }: Field, range: string): boolean {
  return names === DAYS && /^([0-6]|SUN|MON|TUE|WED|THU|FRI|SAT)-SUN$/i.test(range);
}
