/** What a server of etcd counts by itself. */

const METRICS = {
  Txn: ['grpc_server_started_total', 'Txn'],
  Range: ['grpc_server_started_total', 'Range'],
  LeaseGrant: ['grpc_server_started_total', 'LeaseGrant'],
  Watch: ['grpc_server_started_total', 'Watch'],
  WatchAsked: ['grpc_server_msg_received_total', 'Watch'],
  Watched: ['grpc_server_msg_sent_total', 'Watch'],
  KeepAlive: ['grpc_server_msg_received_total', 'LeaseKeepAlive'],
} as const;

/**
 * How many requests of each kind it has started on, how many streams of watches were opened, what was asked and told on
 * these (first, that they see), and how many keep-alives were read.
 */
export async function countsOf(url: string): Promise<Record<keyof typeof METRICS, number>> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const of = ([metric, method]: readonly [string, string]): number => {
    const found = new RegExp(`^${metric}\\{grpc_method="${method}".*\\} (.+)$`, 'm').exec(text);
    return Number(found?.[1] ?? 0);
  };
  const counts = Object.entries(METRICS).map(([name, metric]) => [name, of(metric)] as const);
  return Object.fromEntries(counts) as Record<keyof typeof METRICS, number>;
}

/** How many watches stand at a server. */
export async function watchersOf(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^etcd_debugging_mvcc_watcher_total (.+)$/m.exec(text)?.[1]);
}
