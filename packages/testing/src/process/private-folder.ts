/**
 * Folders under a name that everybody knows, in a place where everybody may write. Somebody else may have made one
 * first: what stands in it would be deleted, killed or run by whoever trusts it. So it is used only where nobody but
 * this user can write.
 */

/**
 * Makes a folder of this user alone, or takes the one that is there, and answers its path. Also runs inside a worker's
 * program, from its own text: it uses nothing but Node.
 *
 * @throws Error that says what to do: it belongs to somebody else, or others can write there.
 */
export function privateFolder(path: string, mode = 0o700): string {
  const fs = process.getBuiltinModule('node:fs');
  fs.mkdirSync(path, { recursive: true, mode });
  const found = fs.lstatSync(path);
  const me = process.getuid?.();
  // Windows: a temporary folder is each user's own.
  if (me === undefined) return path;
  const help = 'Remove it, or set TMPDIR to a folder of your own';
  if (!found.isDirectory()) throw new Error(`${path} is no folder of this user. ${help}`);
  if (found.uid !== me) throw new Error(`${path} belongs to the user ${found.uid}, not to ${me}. ${help}`);
  if ((found.mode & 0o022) !== 0) throw new Error(`others than its owner can write to ${path}. ${help}`);
  if ((found.mode & 0o777) !== mode) fs.chmodSync(path, mode);
  return path;
}
