// Child processes for scripts: exit code as a value, output either shown or collected.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { root } from './repo.mjs';

const require = createRequire(join(root, 'package.json'));

/**
 * Runs a program without a shell and without stdin. Output goes to this process's own streams, or, with
 * `capture`, into `output`.
 */
export function run(command, args, { cwd = root, env = process.env, capture = false } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      env,
      stdio: ['ignore', capture ? 'pipe' : 'inherit', capture ? 'pipe' : 'inherit'],
    });
    let output = '';
    child.stdout?.on('data', (chunk) => (output += chunk));
    child.stderr?.on('data', (chunk) => (output += chunk));
    child.on('error', (error) => resolve({ code: 127, output: `${output}${error.message}\n` }));
    child.on('close', (code, signal) => resolve({ code: code ?? (signal ? 1 : 0), output }));
  });
}

/** Runs a tool of node_modules by its file, so that no shim or PATH decides which version runs. */
export function runNodeTool(file, args, { node = process.execPath, ...options } = {}) {
  return run(node, [resolveTool(file), ...args], options);
}

function resolveTool(file) {
  const [scope, name] = file.split('/');
  const packageName = scope.startsWith('@') ? `${scope}/${name}` : scope;
  const manifest = findManifest(packageName);
  return join(dirname(manifest), file.slice(packageName.length + 1));
}

function findManifest(packageName) {
  for (const base of require.resolve.paths(packageName) ?? []) {
    const manifest = join(base, packageName, 'package.json');
    try {
      return require.resolve(manifest);
    } catch {
      // not in this folder: try the next
    }
  }
  throw new Error(`${packageName} is not installed; run npm ci`);
}
