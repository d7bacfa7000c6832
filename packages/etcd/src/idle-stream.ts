/**
 * Streams that are open and that nobody waits for must not keep the process alive (L5). The client's transport counts
 * every open call and holds its socket for as long as there is one, with no setting to tell it otherwise; so a stream is
 * taken out of that count, once it runs. Calls of the application on the same connection are counted as ever.
 *
 * The way to the transport is not public. Where it is not found, the stream keeps the process alive until it is closed,
 * and nothing else changes.
 */

/** What lies between a stream and its connection, as far as it is used. Each part is one layer of the library. */
interface Layer {
  readonly transport?: { removeActiveCall?(call: Layer): void };
  readonly call?: Layer | null;
  readonly nextCall?: Layer | null;
  readonly child?: Layer | null;
  /** Of the layer that retries: one for each try, the last one runs. */
  readonly underlyingCalls?: readonly { readonly call?: Layer }[];
}

/** Interceptors of the application add a few. */
const MAX_LAYERS = 32;

/** Lets the process end while this stream is open. It has to run already: something was read from it. */
export function letProcessEnd(stream: object): void {
  let layer: Layer | null | undefined = stream;
  for (let depth = 0; depth < MAX_LAYERS && layer !== null && layer !== undefined; depth += 1) {
    if (layer.transport !== undefined) {
      layer.transport.removeActiveCall?.(layer);
      return;
    }
    layer = layer.nextCall ?? layer.call ?? layer.child ?? layer.underlyingCalls?.at(-1)?.call;
  }
}
