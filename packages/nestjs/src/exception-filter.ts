/**
 * What a caller by HTTP is told where Guard refused. Everything else goes on as it would without this filter, which is
 * told to each transport in the way that its part of Nest understands: none of them takes a filter that throws.
 */
import { GuardError } from '@guard/core';
import {
  type ArgumentsHost,
  Catch,
  type ExceptionFilter,
  HttpException,
  type HttpServer,
  Logger,
} from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';

interface Answer {
  readonly status: number;
  readonly error: string;
  readonly message: string;
}

const BUSY: Answer = { status: 423, error: 'Locked', message: 'Somebody else is working on this.' };
const DUPLICATE: Answer = { status: 409, error: 'Conflict', message: 'This has been asked for already.' };
const AWAY: Answer = {
  status: 503,
  error: 'Service Unavailable',
  message: 'This cannot be done safely at the moment.',
};

/** Known by its brand: an error of another copy of `@guard/core` in the process is one too. */
abstract class AnyGuardError {
  static [Symbol.hasInstance](error: unknown): boolean {
    return GuardError.is(error);
  }
}

/**
 * Answers 423 where a lock is busy, 409 where a run is a duplicate, and 503 where a backend cannot be asked or the
 * application is going down. The body has the `code`, and the `reason` of a skipped run; no keys and no causes.
 *
 * @example
 * providers: [{ provide: APP_FILTER, useClass: GuardExceptionFilter }]
 */
@Catch(AnyGuardError)
export class GuardExceptionFilter extends BaseExceptionFilter implements ExceptionFilter<GuardError> {
  override catch(error: GuardError, host: ArgumentsHost): void {
    if (host.getType() === 'ws') answerBySocket(error, host);
    // A message's sender and a resolver's caller are answered by Nest itself where a filter answers nothing.
    if (host.getType() !== 'http') return;
    const answer = answerTo(error);
    const told = answer === undefined ? error : httpErrorOf(answer, error);
    if ((this.applicationRef ?? this.httpAdapterHost?.httpAdapter) !== undefined) super.catch(told, host);
    else new BaseExceptionFilter(PLAIN as unknown as HttpServer).catch(told, host);
  }
}

/** Of a filter that was made by `new`, nobody knows the server: the answer is written as express and fastify both do. */
interface Response {
  readonly headersSent?: boolean;
  readonly sent?: boolean;
  status(status: number): Response;
  send(body: unknown): unknown;
  end?(): unknown;
}

const PLAIN: Pick<HttpServer<unknown, Response>, 'isHeadersSent' | 'reply' | 'end'> = {
  isHeadersSent: ({ headersSent, sent }: Response) => headersSent === true || sent === true,
  reply: (response: Response, body: unknown, status: number) => response.status(status).send(body),
  end: (response: Response) => response.end?.(),
};

/** What Nest answers where no filter matches; it leaves a socket to the filter that does. */
function answerBySocket(error: GuardError, host: ArgumentsHost): void {
  const socket = host.switchToWs();
  const client = socket.getClient<Partial<Socket>>();
  const cause = { pattern: socket.getPattern(), data: socket.getData<unknown>() };
  const told = { status: 'error', message: 'Internal server error', cause };
  // A plain WebSocket has an `emit` too, which tells nobody but this process.
  if (typeof client.readyState === 'number')
    client.send?.(JSON.stringify({ event: 'exception', data: told }));
  else client.emit?.('exception', told);
  new Logger('WsExceptionsHandler').error(error);
}

/** A plain WebSocket, or one of Socket.IO. */
interface Socket {
  readonly readyState: number;
  send(text: string): void;
  emit(event: string, payload: unknown): void;
}

function answerTo({ code, reason }: GuardError): Answer | undefined {
  if (code === 'lock-busy') return BUSY;
  if (code === 'run-skipped') return reason === 'unavailable' ? AWAY : DUPLICATE;
  return code === 'unavailable' || code === 'closed' ? AWAY : undefined;
}

function httpErrorOf({ status, error, message }: Answer, cause: GuardError): HttpException {
  const { code, reason } = cause;
  const why = reason === undefined ? {} : { reason };
  return new HttpException({ statusCode: status, error, code, ...why, message }, status, { cause });
}
