// A put, the event of its expiry, and the reason of an error.
'use strict';

const assert = require('assert');
const path = require('path');
const grpc = require('@grpc/grpc-js');
const protoLoader = require('@grpc/proto-loader');

const address = process.argv[2] || '127.0.0.1:7171';
const key = Buffer.from(`node/${process.hrtime.bigint()}`);

// Nothing is generated: the protos are read when the program starts.
const definitions = protoLoader.loadSync(
    ['timecache/v1/data.proto', 'google/rpc/status.proto', 'google/rpc/error_details.proto'],
    {includeDirs: [path.join(__dirname, '../../../proto')], longs: String, enums: String});
const {TimeCacheService} = grpc.loadPackageDefinition(definitions).timecache.v1;
const stub = new TimeCacheService(address, grpc.credentials.createInsecure());

const deadline = (seconds) => ({deadline: Date.now() + seconds * 1000});
const call = (method, request) => new Promise((resolve, reject) => {
  stub[method](request, deadline(5), (error, response) => error ? reject(error) : resolve(response));
});

// Google's error details, in the trailing metadata.
function errorInfo(error) {
  const [bytes] = error.metadata.get('grpc-status-details-bin');
  const {details} = definitions['google.rpc.Status'].deserialize(bytes);
  const info = details.find(({type_url: type}) => type.endsWith('/google.rpc.ErrorInfo'));
  return definitions['google.rpc.ErrorInfo'].deserialize(info.value);
}

async function expiry() {
  // To go on after a break: resumeTokens: [message.resumeToken].
  const watch = stub.watchExpired({namespaces: ['default'], keyPrefix: key}, deadline(10));
  let put;
  for await (const message of watch) {
    // The first message says that the watch stands: what dies from now on is told.
    put ??= await call('put', {namespace: 'default', key, value: Buffer.from('v'), ttl: {seconds: 1}});
    for (const event of message.events || []) {
      assert.deepStrictEqual([event.key, event.value.toString(), event.version], [key, 'v', put.version]);
      watch.on('error', () => {});  // CANCELLED
      watch.cancel();
      return event;
    }
  }
  throw new Error('the watch ended');
}

async function main() {
  const event = await expiry();
  console.log('expired:', event.key.toString(), new Date(event.deathTime.seconds * 1000).toISOString());
  const error = await call('get', {namespace: 'absent', key}).catch((error) => error);
  const info = errorInfo(error);
  assert.deepStrictEqual([info.domain, info.reason], ['timecached', 'NAMESPACE_NOT_FOUND']);
  console.log('error:', info.reason);
  stub.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
