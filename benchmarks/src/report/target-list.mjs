// The targets, backend by backend.

const at = (backend, scenario, params = {}) => ({ backend, scenario, params });

/** `ours` is at most `limit` times as slow as `over`. */
function latency(backend, over, limit) {
  return {
    text: `${backend}: a lone pair over that of ${over}`,
    ...{ at: at(backend, 'uncontended'), metric: 'pair_p50_ms', over, sign: '<=', limit },
  };
}

/** At least `limit` times as many pairs. */
function throughput(backend, concurrency, over, limit) {
  return {
    text: `${backend}: pairs/s at ${concurrency} over those of ${over === 'best' ? 'the best peer' : over}`,
    at: at(backend, 'throughput', { concurrency }),
    ...{ metric: 'pairs_per_s', over, sign: '>=', limit },
  };
}

const CROWD = { waiters: 16, holdMs: 2, thinkMs: 10 };

/** How the lock goes from hand to hand, with 16 waiters in one process or four. */
function handover(backend, processes, { ops, pushes, gap, turn, share, peer, wait }) {
  const where = at(backend, 'contention', { processes, ...CROWD });
  const name = `${backend}, ${processes} process${processes === 1 ? '' : 'es'}`;
  return [
    ops && { text: `${name}: operations per hand-over`, metric: 'ops_per_handover', sign: '<=', limit: ops },
    pushes && {
      text: `${name}: messages per hand-over`,
      metric: 'pushes_per_handover',
      sign: '<=',
      limit: pushes,
    },
    gap && {
      text: `${name}: gap p50 over a bare message`,
      ...{ metric: 'gap_p50_ms', over: 'floor', overMetric: 'floor_ms', sign: '<=', limit: gap },
    },
    turn && {
      text: `${name}: wait p99 over a full turn`,
      metric: 'wait_p99_ms',
      turn: true,
      sign: '<=',
      limit: turn,
    },
    share && {
      text: `${name}: largest share over the smallest`,
      ...{ metric: 'share_min_max', invert: true, sign: '<=', limit: share },
    },
    peer && {
      text: `${name}: hand-overs/s over ${peer.over === 'best' ? 'the best peer' : peer.over}`,
      ...{ metric: 'handovers_per_s', over: peer.over, sign: '>=', limit: peer.limit },
    },
    wait && {
      text: `${name}: wait p99 over ${wait.over === 'fastest' ? 'the best peer' : wait.over}`,
      ...{ metric: 'wait_p99_ms', over: wait.over, sign: '<=', limit: wait.limit },
    },
  ]
    .filter(Boolean)
    .map((target) => ({ at: where, ...target }));
}

/** Per second for 10,000 locks with a ttl of 30 s: a shorter one renews more often. */
function holding(backend, metric, limit) {
  return {
    text: `${backend}: ${metric} for 10,000 locks of 30 s`,
    at: at(backend, 'hold', { locks: 10_000 }),
    ...{ metric, sign: '<=', limit, scale: ({ ttlMs }) => ttlMs / 30_000 },
  };
}

/** Nobody holds beside another, whatever happens. */
const SAFE = ['memory', 'sqlite', 'postgres', 'mariadb', 'redis', 'etcd'].flatMap((backend) =>
  ['sigstop', 'blocked-loop', 'cut-off', 'skewed-clock', 'server-restart', 'leader-change'].map((fault) => ({
    text: `${backend}: ms of two holders at once, ${fault}`,
    at: at(backend, 'expiry', { fault }),
    ...{ metric: 'overlap_ms', sign: '<=', limit: 0 },
  })),
);

export const TARGETS = [
  { ...latency('memory', 'async-mutex', 1), text: 'memory: a lone pair over that of async-mutex' },
  latency('memory', 'verrou', 0.25),
  throughput('memory', 64, 'async-mutex', 1),
  {
    text: 'memory: pairs/s of 16 waiters on one key over those of verrou',
    at: at('memory', 'throughput', { oneKey: true }),
    ...{ metric: 'pairs_per_s', over: 'verrou', sign: '>=', limit: 10 },
  },
  latency('sqlite', 'raw', 1.2),
  {
    text: 'sqlite, 4 processes: pairs/s over those one by one',
    at: at('sqlite', 'throughput', { processes: 4 }),
    ...{ metric: 'pairs_per_s', over: 'guard, one by one', sign: '>=', limit: 2.5 },
  },
  ...[
    ['share_min_max', 1.4, true, 'largest share over the smallest'],
    ['pair_max_ms', 100, false, 'the longest pair, ms'],
    ['loop_lag_ms', 50, false, 'lag of the event loop, ms'],
  ].map(([metric, limit, invert, what]) => ({
    text: `sqlite, 4 processes: ${what}`,
    at: at('sqlite', 'throughput', { processes: 4 }),
    ...{ metric, limit, invert, sign: '<=' },
  })),
  latency('postgres', 'raw', 1.4),
  throughput('postgres', 64, 'raw', 6),
  throughput('postgres', 64, 'advisory', 2.5),
  ...[1, 4].flatMap((processes) =>
    handover('postgres', processes, { ops: 2.1, gap: 1.5, peer: { over: 'advisory', limit: 0.7 } }),
  ),
  holding('postgres', 'ops_per_s', 2),
  latency('mariadb', 'raw', 1.2),
  throughput('mariadb', 64, 'raw', 4),
  throughput('mariadb', 256, 'raw', 6),
  latency('redis', 'raw', 1.3),
  throughput('redis', 64, 'raw', 1.8),
  throughput('redis', 64, 'best', 2),
  throughput('redis', 256, 'raw', 2.3),
  ...[1, 4].flatMap((processes) =>
    handover('redis', processes, {
      ...{ ops: 2.1, pushes: 1.05, gap: processes === 1 ? 1.5 : 2.2, turn: 1.3, share: 1.25 },
      peer: { over: 'best', limit: processes === 1 ? 1.5 : 1.2 },
      wait: { over: 'fastest', limit: 0.25 },
    }),
  ),
  holding('redis', 'ops_per_s', 5),
  holding('redis', 'client_cpu_pct', 1),
  latency('etcd', 'raw', 1.15),
  throughput('etcd', 64, 'raw', 5),
  throughput('etcd', 64, 'etcd3', 11),
  ...[1, 4].flatMap((processes) =>
    handover('etcd', processes, {
      ...{ ops: 2.2, gap: processes === 1 ? 1.4 : 1.8 },
      peer: { over: 'etcd3', limit: 1.6 },
      wait: { over: 'etcd3', limit: 1 / 6 },
    }),
  ),
  {
    text: 'etcd: server time for a pair after 1,000 claims on its lock, over that of the first',
    ...{ at: at('etcd', 'throughput', { claimsBefore: 1_000 }), overParams: { claimsBefore: 0 } },
    ...{ metric: 'server_us_per_pair', over: 'guard', sign: '<=', limit: 1.3 },
  },
  latency('etcd-cluster', 'raw', 1.15),
  throughput('etcd-cluster', 64, 'raw', 4.5),
  throughput('etcd-cluster', 64, 'etcd3', 11),
  // One keep-alive every third of the ttl.
  holding('etcd', 'ops_per_s', 0.2),
  ...SAFE,
];
