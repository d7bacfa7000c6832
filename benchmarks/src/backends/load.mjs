// A backend by its name, with the contenders that take part.

/** `only`: names; all where it is left out. */
export async function loadBackend(name, only) {
  const { [name]: backend, contenders, runners } = await import(`./${name}.mjs`);
  const takesPart = (contender) => only?.includes(contender) ?? true;
  const chosen = (all) => all && Object.fromEntries(Object.entries(all).filter(([each]) => takesPart(each)));
  return { backend, contenders: chosen(contenders), runners: chosen(runners), takesPart };
}
