/**
 * A login that etcd calls outdated: with JWT, every token is, once any user, role or right was changed. The client logs
 * in anew where etcd says that a token is not valid, and does not know this other sentence. So one call tells it the
 * sentence that it knows.
 */

/** What an interceptor of the client's transport wraps, as far as it is used. */
interface Call {
  start(metadata: unknown, listener?: Listener): void;
}

interface Listener {
  onReceiveStatus?(status: Status): void;
}

interface Status {
  readonly details: string;
}

const OUTDATED = 'revision of auth store is old';
const NOT_VALID = 'etcdserver: invalid auth token';

/** Whether etcd refused a call because users or rights were changed since the login. It carried nothing out. */
export function isLoginOutdated(error: unknown): boolean {
  return error instanceof Error && error.message.includes(OUTDATED);
}

/** Lets the client log in anew, and send the call again, where its login is outdated. */
export function asNotValid(options: object, next: (options: object) => Call): Call {
  const call = next(options);
  const start = call.start.bind(call);
  call.start = (metadata, listener) => {
    const onReceiveStatus = (status: Status): void =>
      listener?.onReceiveStatus?.(
        status.details.includes(OUTDATED) ? { ...status, details: NOT_VALID } : status,
      );
    start(metadata, { ...listener, onReceiveStatus });
  };
  return call;
}
