// Servers that answer as a test says: for what is hard to have from a real one.

import { createServer, type Http2Server, type Http2Session, type ServerHttp2Stream } from 'node:http2';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import * as grpc from '@grpc/grpc-js';
import { TimecacheClient, type ClientOptions } from 'timecached';
import { ErrorInfo } from '../src/gen/google/rpc/error_details.js';
import { Status } from '../src/gen/google/rpc/status.js';
import {
  TimeCacheServiceService as Service,
  type TimeCacheServiceServer,
} from '../src/gen/timecache/v1/data.js';

/** A server with these calls, and the services that `addMore` adds; UNIMPLEMENTED are all others. */
export async function serve(
  calls: Partial<TimeCacheServiceServer>,
  options: ClientOptions = {},
  addMore: (server: grpc.Server) => void = () => {},
  serverOptions: grpc.ServerOptions = {},
) {
  const server = new grpc.Server(serverOptions);
  addMore(server);
  server.addService(Service, calls as TimeCacheServiceServer);
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  const client = new TimecacheClient(`127.0.0.1:${port}`, options);
  const stop = () => {
    client.close();
    server.forceShutdown();
  };
  return { client, stop };
}

/** A server that has no gRPC: what it does with each stream is up to the test. */
export async function serveStreams(onStream: (stream: ServerHttp2Stream, count: number) => void) {
  const sessions: Http2Session[] = [];
  let count = 0;
  const server: Http2Server = createServer();
  server.on('session', (session) => sessions.push(session));
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => {});
    onStream(stream, ++count);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = new TimecacheClient(`127.0.0.1:${(server.address() as AddressInfo).port}`);
  const stop = () => {
    client.close();
    for (const session of sessions) session.destroy();
    server.close();
  };
  return { client, stop };
}

/** A message as it goes over a stream. */
export function frame(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** A message without anything in it. */
export function none<Message>(type: { decode(bytes: Uint8Array): Message }): Message {
  return type.decode(Buffer.alloc(0));
}

/** An error of the service, as a status that a result has. */
export function statusOf(reason: string, code: grpc.status, about: Record<string, string> = {}): Status {
  const value = Buffer.from(ErrorInfo.encode({ reason, domain: 'timecached', metadata: about }).finish());
  const details = [{ typeUrl: 'type.googleapis.com/google.rpc.ErrorInfo', value }];
  return { code, message: 'refused', details };
}

/** The same, as a call or stream ends with it. */
export function refusal(
  reason: string,
  about: Record<string, string> = {},
  code: grpc.status = grpc.status.UNAVAILABLE,
) {
  const metadata = new grpc.Metadata();
  const bytes = Buffer.from(Status.encode(statusOf(reason, code, about)).finish());
  metadata.set('grpc-status-details-bin', bytes);
  return { code, details: 'refused', metadata };
}
