// OpenTelemetry, where the application has @opentelemetry/api: spans of calls, and of what handles events. Internal, but
// for withConsumerSpan.

import type * as OpenTelemetry from '@opentelemetry/api';
import { status as grpcCodes } from '@grpc/grpc-js';
import { TimecacheError } from './errors.js';
import type { Operation as OperationMessage } from './gen/timecache/v1/data.js';
import type { Settle } from './settle.js';
import type { ExpiredEvent } from './watcher.js';

const otel = load();

function load(): typeof OpenTelemetry | undefined {
  try {
    // An import would have to succeed.
    return require('@opentelemetry/api') as typeof OpenTelemetry;
  } catch {
    return undefined;
  }
}

let tracer: OpenTelemetry.Tracer | undefined;

function getTracer(api: typeof OpenTelemetry): OpenTelemetry.Tracer {
  if (!tracer) {
    const { version } = require('../package.json') as { version: string };
    tracer = api.trace.getTracer('timecached', version);
  }
  return tracer;
}

/**
 * Calls a handler in a span, for events that come without a worker. Of kind CONSUMER, a child of the active span, with a
 * link to the span of the put, if the entry has kept its trace (`traceEntries`). What the handler throws, or rejects
 * with, is the span's error; a {@link Settle} that it returns is noted. Names and attributes are those of OpenTelemetry's
 * conventions for messaging. Without @opentelemetry/api it just calls the handler.
 *
 *     for (const event of (await client.fetchExpired('billing')).events) await withConsumerSpan(event, 'billing', charge);
 */
export async function withConsumerSpan<Result>(
  event: ExpiredEvent,
  group: string,
  handle: (event: ExpiredEvent) => Promise<Result> | Result,
): Promise<Result> {
  if (!otel) return await handle(event);
  const { context, trace } = otel;
  const attributes: OpenTelemetry.Attributes = {
    'messaging.system': 'timecached',
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'messaging.destination.name': event.namespace,
    'messaging.message.body.size': event.value?.length ?? 0, // A test may leave it out.
    'timecached.namespace': event.namespace,
    'timecached.cause': event.cause,
  };
  if (group) attributes['messaging.consumer.group.name'] = group;
  if (event.eventId) {
    attributes['messaging.message.id'] = `${event.eventId}`;
    attributes['timecached.attempt'] = event.attempt;
  }
  const span = getTracer(otel).startSpan(`process ${event.namespace}`, {
    kind: otel.SpanKind.CONSUMER,
    attributes,
    links: linksTo(event.traceparent),
  });
  try {
    const result = await context.with(trace.setSpan(context.active(), span), () => handle(event));
    noteSettlement(span, result);
    return result;
  } catch (error) {
    span.recordException(error as Error);
    setError(span, error instanceof Error ? error.name : typeof error, String(error));
    throw error;
  } finally {
    span.end();
  }
}

function noteSettlement(span: OpenTelemetry.Span, result: unknown): void {
  const { action, reason } = (result ?? { action: 'ack' }) as Partial<Settle> & { reason?: string };
  if (typeof action !== 'string') return;
  span.setAttribute(
    'timecached.settlement',
    action.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  );
  if (reason) span.setAttribute('timecached.settlement.reason', reason);
}

function linksTo(traceparent: string): OpenTelemetry.Link[] {
  const [, traceId, spanId, flags] =
    /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent) ?? [];
  const context = {
    traceId: traceId ?? '',
    spanId: spanId ?? '',
    traceFlags: parseInt(flags ?? '0', 16),
    isRemote: true,
  };
  return otel?.isSpanContextValid(context) ? [{ context }] : [];
}

/** The span of one call, with all its attempts. */
export class CallSpan {
  /** For the server's log; undefined: the call is in no trace. */
  readonly traceparent: string | undefined;
  /** The same, if the trace is sampled: worth to be kept with an entry. */
  readonly sampledTraceparent: string | undefined;
  #attempt = 1;
  #span: OpenTelemetry.Span | undefined;

  /** @internal `span`: undefined where there is no tracing. */
  constructor(span?: unknown) {
    this.#span = span as OpenTelemetry.Span | undefined;
    if (!this.#span) return;
    const { traceId, spanId, traceFlags } = this.#span.spanContext();
    this.traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
    if (traceFlags & otel!.TraceFlags.SAMPLED) this.sampledTraceparent = this.traceparent;
  }

  /** Notes that an attempt has failed and there is another, at this address. */
  retry(error: unknown, address: string): void {
    if (!this.#span) return;
    this.#span.addEvent('retry', {
      'timecached.attempt': ++this.#attempt,
      'error.type': typeOf(error),
      'error.message': error instanceof TimecacheError ? error.description : String(error),
    });
    this.#span.setAttributes(serverOf(address));
  }

  /** The call has ended. Only the first time counts. */
  end(error?: unknown): void {
    const span = this.#span;
    if (!span) return;
    this.#span = undefined;
    let code: number = grpcCodes.OK;
    if (error !== undefined) {
      // By its signal, if it is no error of a call.
      code = error instanceof TimecacheError ? grpcCodes[error.code] : grpcCodes.CANCELLED;
      setError(span, typeOf(error), error instanceof Error ? error.message : String(error));
      if (error instanceof TimecacheError && error.requestId)
        span.setAttribute('timecached.request_id', error.requestId);
    }
    span.setAttribute('rpc.grpc.status_code', code);
    span.end();
  }
}

/** A property of the options of calls that have no span, as those that a worker makes by itself. */
export const UNTRACED = Symbol('untraced');

/** Of a call that nobody traces. */
export const NO_CALL = new CallSpan();

let hasSdk = false;

// Whether no SDK is registered, and the caller is in no trace that another library has begun. Otherwise each call would
// cost the making of a span that is none.
function isUnused(api: typeof OpenTelemetry, parent: OpenTelemetry.Context): boolean {
  if (!hasSdk) {
    const provider = api.trace.getTracerProvider();
    hasSdk =
      !(provider instanceof api.ProxyTracerProvider) ||
      provider.getDelegateTracer('timecached') !== undefined;
  }
  return !hasSdk && api.trace.getSpan(parent) === undefined;
}

/** Whether a call that begins now has a span. */
export function isTraced(): boolean {
  return otel !== undefined && !isUnused(otel, otel.context.active());
}

/** Begins a span, as a child of the active one, or in the context `parent`. `path`: of the method. */
export function beginCall(path: string, request: unknown, address: string, parent?: unknown): CallSpan {
  if (!otel) return NO_CALL;
  const context = (parent as OpenTelemetry.Context | undefined) ?? otel.context.active();
  if (isUnused(otel, context)) return NO_CALL;
  const [, service, method] = path.split('/') as [string, string, string];
  const { namespace, name, operations } = request as Partial<Record<string, unknown>>;
  const attributes: OpenTelemetry.Attributes = {
    'rpc.system': 'grpc',
    'rpc.service': service,
    'rpc.method': method,
    ...serverOf(address),
  };
  if (typeof namespace === 'string') attributes['timecached.namespace'] = namespace;
  else if (typeof name === 'string') attributes['timecached.namespace'] = name;
  if (Array.isArray(operations)) attributes['timecached.operations'] = operations.length;
  const span = getTracer(otel).startSpan(
    `${service}/${method}`,
    { kind: otel.SpanKind.CLIENT, attributes },
    context,
  );
  return span.spanContext().traceId === otel.INVALID_TRACEID ? NO_CALL : new CallSpan(span);
}

/** For `parent` of a span that begins later. */
export function activeContext(): unknown {
  return otel?.context.active();
}

/** Runs what goes on in the background, which is no part of the trace that begins it. */
export function withoutContext<Result>(run: () => Result): Result {
  return otel ? otel.context.with(otel.ROOT_CONTEXT, run) : run();
}

/** A request whose entries keep the trace, unless they have one of their own. */
export function stamped<Request>(request: Request, traceparent: string | undefined): Request {
  if (!traceparent) return request;
  const own = request as { traceparent?: string; operations?: OperationMessage[] };
  if (own.traceparent === '') return { ...request, traceparent };
  if (!own.operations) return request;
  return {
    ...request,
    operations: own.operations.map((operation) => stampedOperation(operation, traceparent)),
  };
}

/** The same of one operation. */
export function stampedOperation(
  operation: OperationMessage,
  traceparent: string | undefined,
): OperationMessage {
  const { request } = operation;
  if (!traceparent || !request || !('traceparent' in request.value) || request.value.traceparent)
    return operation;
  return {
    ...operation,
    request: { ...request, value: { ...request.value, traceparent } } as OperationMessage['request'],
  };
}

function serverOf(address: string): OpenTelemetry.Attributes {
  const plain = address.replace(/^(dns:(\/\/[^/]*\/)?|ipv4:|ipv6:|unix:(?=\/))/, '');
  const [, host, port] = /^(.+):(\d+)$/.exec(plain) ?? [];
  if (host === undefined) return { 'server.address': plain };
  return { 'server.address': host.replace(/^\[(.*)\]$/, '$1'), 'server.port': Number(port) };
}

function typeOf(error: unknown): string {
  if (error instanceof TimecacheError) return error.reason ?? error.code;
  return error instanceof Error ? error.name : typeof error;
}

function setError(span: OpenTelemetry.Span, type: string, message: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: otel!.SpanStatusCode.ERROR, message });
}
