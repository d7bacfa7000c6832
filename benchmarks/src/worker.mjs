// The program of a process with one contender. It opens the contender when it is first needed, once for each client, and
// does what the stage asks: several works at once where the scenario wants that.
import { contend } from './workloads/contend.mjs';
import { Holds } from './workloads/holds.mjs';
import { Beliefs } from './workloads/beliefs.mjs';
import { playPairs } from './workloads/pairs.mjs';

export default async function main({ input: { module, set, contender, address }, tell, hear }) {
  const { [set]: contenders } = await import(module);
  // Nobody is left to ask for anything.
  process.once('disconnect', () => process.exit(1));
  const clients = new Map();
  const client = (name = 'own', options = {}) => {
    if (!clients.has(name))
      clients.set(name, contenders[contender].open(options.address ?? address, options));
    return clients.get(name);
  };
  const holds = new Holds(client);
  const beliefs = new Beliefs(client, tell);
  const verbs = {
    warm: async () => void (await client()),
    pairs: async (args) => playPairs(await client(), args),
    contend: (args) => contend(client, args),
    ready: ({ waiters }) =>
      Promise.all(Array.from({ length: waiters }, (_, n) => client(`waiter ${n}`, { connections: 1 }))).then(
        () => undefined,
      ),
    hold: (args) => holds.take(args),
    usage: () => holds.usage(),
    drop: () => holds.drop(),
    believe: (args) => beliefs.take(args),
    told: (args) => beliefs.told(args),
    letGo: (args) => beliefs.letGo(args),
    block: ({ forMs }) => beliefs.block(forMs),
  };
  for (;;) {
    const { id, verb, args } = await hear();
    if (verb === 'end') break;
    verbs[verb](args).then(
      (value) => tell({ id, value }),
      (error) => tell({ id, error: String(error?.stack ?? error) }),
    );
  }
  // Whatever the libraries leave open ends with the process.
  process.exit(0);
}
