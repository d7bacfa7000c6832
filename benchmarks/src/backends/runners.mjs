// Job queues and a workflow engine, doing the nearest thing to a single run: a piece of work under a key that is done once
// and recorded, asked for and waited for by one process. They do much else that Guard does not.
import { peer } from './peers.mjs';

/** Work by its key: queues carry data and no functions. */
class Desk {
  #work = new Map();
  #done = new Map();

  /** Puts the work down, asks for it, and waits until somebody says that it is recorded as done. */
  async ask(key, work, send) {
    this.#work.set(key, work);
    const done = new Promise((resolve, reject) => this.#done.set(key, { resolve, reject }));
    await send();
    await done;
  }

  do(key) {
    return this.#work.get(key)();
  }

  settle(key, error) {
    const waiting = this.#done.get(key);
    this.#work.delete(key);
    this.#done.delete(key);
    if (error === undefined) waiting?.resolve();
    else waiting?.reject(error);
  }
}

export const bullmq = {
  compares:
    'a job with an id of its own, added to a queue and worked off by a worker of the same process; done when the worker has recorded it',
  open: async (address) => {
    const { Queue, Worker } = await peer('bullmq/dist/cjs/index.js').then(
      (module) => module.default ?? module,
    );
    const desk = new Desk();
    const connection = { ...address, maxRetriesPerRequest: null };
    const queue = new Queue('bench', { connection });
    const worker = new Worker('bench', ({ data }) => desk.do(data.key), { connection, concurrency: 16 });
    worker.on('completed', ({ data }) => desk.settle(data.key));
    worker.on('failed', (job, error) => desk.settle(job?.data.key, error));
    await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
    const pair = (key, work) =>
      desk.ask(key, work, () => queue.add('once', { key }, { jobId: key.replaceAll(':', '-') }));
    return { pair };
  },
};

export const pgBoss = {
  compares:
    'a job with a singleton key, sent, fetched and completed by the same process at once: its own workers would look for it every half second at best',
  open: async ({ url }) => {
    const { PgBoss } = await peer('pg-boss/dist/index.js');
    const boss = new PgBoss({ connectionString: url, max: 16 });
    boss.on('error', () => undefined);
    await boss.start();
    await boss.createQueue('bench');
    const desk = new Desk();
    const pair = (key, work) =>
      desk.ask(key, work, async () => {
        await boss.send('bench', { key }, { singletonKey: key });
        // With several at once it may be the job of another; that one is done here then.
        const [job] = await boss.fetch('bench');
        if (job === undefined) throw new Error('the job is not there');
        await desk.do(job.data.key);
        await boss.complete('bench', job.id);
        desk.settle(job.data.key);
      });
    return { pair };
  },
};

export const graphile = {
  compares:
    'a job with a key, added and worked off by a runner of the same process, which is woken by a notification; done when the runner has recorded it',
  open: async ({ url }) => {
    const { Logger, run } = await peer('graphile-worker/dist/index.js').then(
      (module) => module.default ?? module,
    );
    const desk = new Desk();
    const runner = await run({
      connectionString: url,
      concurrency: 16,
      maxPoolSize: 16,
      noHandleSignals: true,
      logger: new Logger(() => () => undefined),
      taskList: { bench: ({ key }) => desk.do(key) },
    });
    runner.events.on('job:complete', ({ job, error }) => desk.settle(job.payload.key, error ?? undefined));
    const pair = (key, work) => desk.ask(key, work, () => runner.addJob('bench', { key }, { jobKey: key }));
    return { pair };
  },
};

export const dbos = {
  compares:
    'a workflow with an id of its own and one step, started and waited for; it could go on after a crash in the middle',
  open: async ({ url }) => {
    const { DBOS } = await peer('@dbos-inc/dbos-sdk/dist/src/index.js').then(
      (module) => module.default ?? module,
    );
    const desk = new Desk();
    DBOS.setConfig({ name: 'bench', systemDatabaseUrl: url, logLevel: 'error', runAdminServer: false });
    const workflow = DBOS.registerWorkflow((key) => DBOS.runStep(() => desk.do(key), { name: 'work' }), {
      name: 'bench',
    });
    await DBOS.launch();
    const pair = (key, work) =>
      desk.ask(key, work, async () => {
        const handle = await DBOS.startWorkflow(workflow, { workflowID: key })(key);
        await handle.getResult();
        desk.settle(key);
      });
    return { pair };
  },
};
