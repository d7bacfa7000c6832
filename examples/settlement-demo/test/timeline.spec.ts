import { count, money, Timeline } from '../src/timeline.js';

describe('the timeline', () => {
  const noColor = process.env['NO_COLOR'];
  const term = process.env['TERM'];

  beforeEach(() => {
    delete process.env['NO_COLOR'];
    process.env['TERM'] = 'xterm';
  });
  afterAll(() => {
    restore('NO_COLOR', noColor);
    restore('TERM', term);
  });

  it('is plain where nobody watches', () => {
    expect(printed(false)).toBe('text\n');
  });

  it('has colours on a terminal', () => {
    expect(printed(true)).toBe('\u001b[31mtext\u001b[0m\n');
  });

  it.each([
    ['NO_COLOR', '1'],
    ['TERM', 'dumb'],
  ])('has none with %s=%s', (name, value) => {
    process.env[name] = value;
    expect(printed(true)).toBe('text\n');
  });

  it('writes money and counts for people', () => {
    expect([money(123456789), money(5), money(0), count(10_000)]).toEqual([
      '1,234,567.89',
      '0.05',
      '0.00',
      '10,000',
    ]);
  });
});

function printed(isTTY: boolean): string {
  let text = '';
  new Timeline({ isTTY, write: (chunk: string) => ((text += chunk), true) }).say('text', 'fault');
  return text;
}

function restore(name: string, value: string | undefined): void {
  if (value === undefined) delete process.env[name];
  else process.env[name] = value;
}
