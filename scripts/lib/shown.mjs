// A script that was left with nothing to do has shown nothing: that is a failure and no success. What each script has to
// have done is asked here, so that an empty list, a pattern that matches no file or a program that ended too early is told.

/** The list, which must not be empty; `what` says what should be in it. */
export function atLeastOne(what, list) {
  if (list.length === 0) throw new Error(`there is no ${what}: nothing would be done, and nothing shown`);
  return list;
}

/**
 * What a run of jest was asked for and did not show, in sentences. `files` are those that ran, `{ path, project,
 * passed }`; asked for are names of projects, patterns of paths, and paths.
 */
export function whatWasNotShown({ projects = [], patterns = [], paths = [] }, files) {
  const shown = files.filter(({ passed }) => passed > 0);
  const none = (what) => `no test passed ${what}: its files are gone, or have another name`;
  const ofProject = (name) => shown.some(({ project }) => project === name);
  const ofPattern = (pattern) => shown.some(({ path }) => new RegExp(pattern).test(path));
  const ofPath = (wanted) => shown.some(({ path }) => path.endsWith(`/${wanted}`));
  return [
    ...(shown.length === 0 ? ['no test passed at all'] : []),
    ...projects.filter((name) => !ofProject(name)).map((name) => none(`in the project '${name}'`)),
    ...patterns.filter((one) => !ofPattern(one)).map((one) => none(`whose path matches '${one}'`)),
    ...paths.filter((path) => !ofPath(path)).map((path) => none(`in ${path}`)),
  ];
}

/** The last line of an application that came to its end. A promise that never settles ends a process with 0 as well. */
const LAST_LINE = 'came to its end';

/** The answer of an application, which is none if its last line is missing. */
export function toItsEnd({ code, output }) {
  if (code !== 0 || output.trimEnd().split('\n').at(-1) === LAST_LINE) return { code, output };
  const why = `it ended with 0 and without its last line '${LAST_LINE}': something in it never settled\n`;
  return { code: 1, output: output + why };
}
