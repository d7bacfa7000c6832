// A backend by its name, with the contenders that take part.

/**
 * `only`: names; all where it is left out. Who is asked for by name plays in a quick run too, also where it takes long.
 * `known`: whom the backend has, those too that only run tasks.
 */
export async function loadBackend(name, only) {
  const { [name]: backend, contenders, runners } = await import(`./${name}.mjs`);
  const takesPart = (contender) => only?.includes(contender) ?? true;
  const asked = (each) => (only === undefined ? each : { ...each, asked: true });
  const chosen = (all) =>
    all &&
    Object.fromEntries(
      Object.entries(all)
        .filter(([each]) => takesPart(each))
        .map(([name, each]) => [name, asked(each)]),
    );
  const known = [contenders, runners].flatMap((all) => Object.keys(all ?? {}));
  return { known, backend, contenders: chosen(contenders), runners: chosen(runners), takesPart };
}
