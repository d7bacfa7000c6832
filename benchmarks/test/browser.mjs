// Opens a report in headless Chromium and answers what there is to be seen of it: for each chart its marks, as the
// browser laid them out. Debian's package is installed where this is root; elsewhere it is said what to install.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { canInstallPackages, installPackages } from '../../scripts/lib/debian.mjs';

const PROGRAMS = ['chromium', 'chromium-browser', 'google-chrome'];

/** Runs in the page: how large each mark is, and whether it lies inside its drawing. */
const LOOK = `
  const seen = [...document.querySelectorAll('figure')].map((figure) => {
    const marks = [...figure.querySelectorAll('.mark')].map((mark) => {
      const box = mark.getBoundingClientRect();
      const room = mark.ownerSVGElement.getBoundingClientRect();
      const inside = box.left >= room.left - 1 && box.right <= room.right + 1 && box.top >= room.top - 1 && box.bottom <= room.bottom + 1;
      return { inside, size: Math.max(box.width, box.height), title: mark.querySelector('title').textContent };
    });
    const loaded = figure.getBoundingClientRect().height > 0;
    return { chart: figure.dataset.chart, promised: Number(figure.dataset.marks), loaded, marks };
  });
  document.body.innerHTML = '<pre id="seen"></pre>';
  document.getElementById('seen').textContent = JSON.stringify(seen);`;

/** `[{ chart, promised, loaded, marks: [{ inside, size, title }] }]`. */
export async function seenIn(html) {
  const program = await chromium();
  const folder = mkdtempSync(join(tmpdir(), 'guard-report-'));
  try {
    const page = join(folder, 'report.html');
    writeFileSync(page, html.replace('</html>', `<script>${LOOK}</script></html>`));
    const args = [
      ...[
        '--headless',
        '--disable-gpu',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-dev-shm-usage',
      ],
      // The page is this program's own, and root has no other way.
      ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
      ...[`--user-data-dir=${join(folder, 'profile')}`, '--window-size=900,1200', '--dump-dom'],
      pathToFileURL(page).href,
    ];
    const { stdout } = await promisify(execFile)(program, args, { maxBuffer: 2 ** 26, timeout: 60_000 });
    const text = /<pre id="seen">(.*?)<\/pre>/s.exec(stdout)?.[1];
    if (text === undefined) throw new Error(`chromium showed no report: ${stdout.slice(0, 500)}`);
    return JSON.parse(text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'));
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function chromium() {
  const found = findChromium();
  if (found !== undefined) return found;
  if (!(await canInstallPackages()))
    throw new Error('there is no Chromium on this machine: sudo apt-get install chromium');
  await installPackages(['chromium']);
  const installed = findChromium();
  if (installed === undefined) throw new Error('apt-get install chromium left no Chromium behind');
  return installed;
}

function findChromium() {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .flatMap((folder) => PROGRAMS.map((program) => join(folder, program)))
    .find((program) => existsSync(program));
}
