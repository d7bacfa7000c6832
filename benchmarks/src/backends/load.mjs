// A backend by its name, with the contenders that take part.

/** `only`: names with commas between them, as the command line has them; all where it is left out. */
export async function loadBackend(name, only) {
  const { [name]: backend, contenders, runners } = await import(`./${name}.mjs`);
  return { backend, contenders: chosen(contenders, only), runners: chosen(runners, only) };
}

function chosen(all, only) {
  const wanted = only?.split(',');
  return Object.fromEntries(Object.entries(all).filter(([name]) => wanted?.includes(name) ?? true));
}
