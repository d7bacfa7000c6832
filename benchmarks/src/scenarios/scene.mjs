// One contender and one fault: a holder, the next who waits for the same lock, and a resource that both write to. What
// they believed is asked of them afterwards; what they wrote, the resource saw.
import { setTimeout as pause } from 'node:timers/promises';
import { machineMs } from '../workloads/contend.mjs';

/** How long a holder is watched after it can do something again. */
const WATCH_MS = 400;

export class Scene {
  name;
  #parts;
  #holder;
  #next;
  #entered = {};
  #notes = [];
  #writes = [];
  #answers;
  #when;

  constructor({ name, ...parts }) {
    this.name = name;
    this.#parts = parts;
  }

  /** The processes of both. */
  async open() {
    const { stage, fault, round } = this.#parts;
    [this.#holder, this.#next] = await Promise.all(fault.cast.map((n) => stage.processes.get(this.name, n)));
    for (const [role, process] of [
      ['holder', this.#holder],
      ['next', this.#next],
    ]) {
      process.listeners.set(`${fault.name}.${round}`, (event) => this.#hear(role, event));
      this.#entered[role] = new Promise((resolve) => (this.#entered[`${role}Now`] = resolve));
    }
    if (fault.wallShiftMs !== undefined) this.#next.shiftWallClock(fault.wallShiftMs);
  }

  /** The holder has the lock, the next waits for it, and some part of a renewal period goes by. */
  async begin() {
    const { stage, fault, terms, round, moment, proxy, server } = this.#parts;
    const name = `${fault.name}.${round}`;
    const elsewhere = server === stage.server ? {} : { address: server.address };
    const ask = { name, key: `expiry.${name}`, ttlMs: terms.ttlMs, ...elsewhere };
    const through = proxy === undefined ? {} : { address: server.through(proxy.port) };
    await this.#holder.call('believe', { ...ask, ...through });
    this.#next
      .call('believe', ask, Infinity)
      .catch((error) => this.#notes.push(`the next: ${error.message.split('\n')[0]}`));
    await pause(50 + (moment * terms.ttlMs) / 3);
  }

  async play(common) {
    const { fault, terms, round } = this.#parts;
    const name = `${fault.name}.${round}`;
    const entered = this.#entered.next;
    const hit = fault.hit?.({ holder: this.#holder, next: this.#next, entered, terms });
    // Each holder adds to its own.
    this.#when = { ...((await hit) ?? common) };
    if (fault.keeps) await this.#holder.call('letGo', { name }).catch(() => undefined);
    await Promise.race([entered, pause(fault.keeps ? terms.slackMs + 400 : terms.ttlMs + terms.slackMs)]);
    await pause(WATCH_MS);
    this.#when.watched = machineMs();
    const told = (who) => who.call('told', { name }).catch(() => undefined);
    this.#answers = { holder: await told(this.#holder), next: await told(this.#next) };
  }

  async close() {
    const { fault, round } = this.#parts;
    const name = `${fault.name}.${round}`;
    const death = this.#holder.death;
    if (death !== undefined && fault.kills !== true)
      this.#notes.push(
        `the holder died: ${/\n\s*(\w*Error.*)/.exec(death)?.[1] ?? death.split('\n')[1] ?? death}`,
      );
    await Promise.all(
      [this.#holder, this.#next].map((each) => each.call('letGo', { name }).catch(() => undefined)),
    );
    if (fault.wallShiftMs !== undefined) this.#next.shiftWallClock(0);
    for (const note of this.#notes) this.#parts.stage.note(`${this.name}, ${fault.name}: ${note}`);
  }

  /** The numbers of this scene; what did not happen has none. */
  result() {
    const { fault } = this.#parts;
    const { from, back } = this.#when;
    const { holder, next } = this.#answers;
    const enteredAt = next?.enteredAt;
    const lost = holder?.lostAt;
    // A lease that nobody renews began with the grant.
    const since = this.#parts.stage.contenders[this.name].renews ? from : this.#entered.holderAt;
    const overlap = holder === undefined ? undefined : overlapMs(holder.spans, next?.spans ?? []);
    const refused = this.#writes.filter(
      ({ role, refused: no, late }) => role === 'holder' && late && no,
    ).length;
    if (enteredAt === undefined) this.#notes.push('the next did not get the lock while anybody watched');
    return {
      ...(enteredAt !== undefined && !fault.keeps && enteredAt > from
        ? { takeover_ms: enteredAt - since }
        : {}),
      ...(overlap === undefined ? {} : { overlap_ms: overlap }),
      ...(back === undefined ? {} : { refused_writes: refused }),
      ...(lost === undefined || fault.keeps
        ? {}
        : { lost_signal_late_ms: lateness({ lost, back, enteredAt, holder }) }),
      violations: (overlap ?? 0) > 0 || this.#tokensFell() ? 1 : 0,
    };
  }

  /** The beliefs of both, in milliseconds since the fault. */
  draw() {
    const { stage, fault, terms } = this.#parts;
    const { from, back, watched } = this.#when;
    const since = (spans = []) => spans.map((span) => span.map((at) => Math.round(at - from)));
    const dead = this.#answers.holder === undefined && this.#entered.holderAt !== undefined;
    stage.draw({
      chart: 'expiry',
      contender: this.name,
      params: { fault: fault.name, ttlMs: terms.ttlMs },
      what: fault.what,
      holder: dead ? [[Math.round(this.#entered.holderAt - from), 0]] : since(this.#answers.holder?.spans),
      next: since(this.#answers.next?.spans),
      ...(back === undefined ? {} : { back: Math.round(back - from) }),
      ...(this.#answers.holder?.lostAt === undefined
        ? {}
        : { lost: Math.round(this.#answers.holder.lostAt - from) }),
      until: Math.round(watched - from),
    });
  }

  #hear(role, event) {
    if (event.event === 'entered') {
      this.#entered[`${role}At`] = event.at;
      this.#entered[`${role}Token`] = event.token;
      this.#entered[`${role}Now`]();
    }
    if (event.event === 'write') this.#write(role, event.token);
  }

  /** The resource: it refuses a token that is smaller than one it has seen. Without a token it can refuse nothing. */
  #write(role, token) {
    const largest = this.#writes.reduce((most, each) => (each.token > most ? each.token : most), -1n);
    const refused = token !== undefined && token < largest;
    const late = this.#writes.some((each) => each.role === 'next');
    this.#writes.push({ role, token: token ?? -1n, refused, late });
  }

  #tokensFell() {
    const { holderToken, nextToken } = this.#entered;
    return holderToken !== undefined && nextToken !== undefined && nextToken <= holderToken;
  }
}

/**
 * How late the holder was told: from when it could do something again; else from the deadline that it knows itself; else
 * from when the next had the lock.
 */
function lateness({ lost, back, enteredAt, holder }) {
  if (back !== undefined) return Math.max(0, lost - back);
  return Math.max(0, lost - (holder.deadlineAt ?? enteredAt ?? lost));
}

function overlapMs(ours, theirs) {
  let sum = 0;
  for (const [from, to] of ours)
    for (const [otherFrom, otherTo] of theirs)
      sum += Math.max(0, Math.min(to, otherTo) - Math.max(from, otherFrom));
  return sum;
}
