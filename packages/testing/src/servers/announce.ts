/** Says which server a test ran against: once per process, kind, version and source. */
import type { ServerKind, TestServer } from './server.js';

const said = new Set<string>();

/** Writes one line to the error stream, which is where test runners let lines through. */
export function announce(
  { version, source }: Pick<TestServer, 'version' | 'source'>,
  kind: ServerKind,
): void {
  const line = `test server: ${kind} ${version} (${source})`;
  if (said.has(line)) return;
  said.add(line);
  process.stderr.write(`${line}\n`);
}
