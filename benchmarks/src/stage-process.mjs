// The program of a stage's process.
import { playStage } from './stage.mjs';

const say = (message) => process.send(message);

process.once('disconnect', () => process.exit(1));
// What is to be removed at the end is removed then too.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));
process.once('message', (task) => {
  playStage(task, say).then(
    () => process.send({ done: true }, () => process.exit(0)),
    (error) => process.send({ error: String(error?.stack ?? error) }, () => process.exit(1)),
  );
});
