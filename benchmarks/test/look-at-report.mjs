// A program for the test: the sample report in the browser, as one line of JSON.
import { htmlOf } from '../src/report/html.mjs';
import { faultsIn } from '../src/rows.mjs';
import { seenIn } from './browser.mjs';
import { sampleReport } from './sample-report.mjs';

const report = sampleReport();
const html = htmlOf(report);
// Whatever the installation of the browser said stands on lines of its own before this one.
console.log(
  JSON.stringify({
    faults: faultsIn(report),
    elsewhere: html.match(/(src|href)=/g) ?? [],
    seen: await seenIn(html),
  }),
);
