// A gRPC service for tests, by the usual library of Node.js: peer.mjs PACKAGES '{"reflection":"v1","tls":{…}}'.
// Prints its port, then a line of JSON per call. Lines on stdin change how it is: serving, not_serving, stop.
import { createRequire } from 'node:module';
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';

const [, script, packages, text] = process.argv;
const options = JSON.parse(text ?? '{}');
const require = createRequire(path.join(packages, 'package.json'));
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');
const { ReflectionService } = require('@grpc/reflection');

const folder = path.dirname(script);
const definition = loader.loadSync(['peer.proto'], { includeDirs: [folder], keepCase: true, longs: String, defaults: true });
const { Peer } = grpc.loadPackageDefinition(definition).perdura.test;
const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const done = new Map(); // by idempotency key
const failed = new Map();
let serving = true;

// google.rpc.Status with a RetryInfo in it.
function retryDetails(code, ms) {
  const field = (number, bytes) => Buffer.concat([Buffer.from([number * 8 + 2, bytes.length]), bytes]);
  const nanos = (ms % 1000) * 1000000;
  const varint = (value) => {
    const out = [];
    for (; value > 127; value = Math.floor(value / 128)) out.push((value % 128) + 128);
    return Buffer.from([...out, value]);
  };
  const delay = Buffer.concat([Buffer.from([8]), varint(Math.floor(ms / 1000)), Buffer.from([16]), varint(nanos)]);
  const any = Buffer.concat([field(1, Buffer.from('type.googleapis.com/google.rpc.RetryInfo')), field(2, field(1, delay))]);
  return Buffer.concat([Buffer.from([8, code]), field(3, any)]);
}

function metadataOf(call) {
  return Object.fromEntries(Object.entries(call.metadata.getMap())
    .map(([key, value]) => [key, Buffer.isBuffer(value) ? `bytes:${value.toString('latin1')}` : value]));
}

function end(call, callback) {
  const { request } = call;
  const key = call.metadata.get('idempotency-key')[0];
  const times = (failed.get(key) ?? 0) + 1;
  if (request.status && (!request.fail_times || times <= request.fail_times)) {
    failed.set(key, times);
    const metadata = new grpc.Metadata();
    if (request.retry_ms) metadata.set('grpc-status-details-bin', retryDetails(request.status, request.retry_ms));
    callback({ code: request.status, details: request.message, metadata });
    return;
  }
  const reply = { did: request.id, n: String(request.n), at: request.at, part: request.part,
    ...(request.fill_bytes ? { fill: Buffer.alloc(request.fill_bytes) } : {}) };
  done.set(key, reply);
  callback(null, reply);
}

const server = new grpc.Server(options.streams ? { 'grpc.max_concurrent_streams': options.streams } : {});
let underWay = 0;
let most = 0;
const connections = new Set();
server.addService(Peer.service, {
  Do(call, callback) {
    most = Math.max(most, ++underWay);
    connections.add(call.getPeer());
    if (!options.quiet) {
      say({ method: 'Do', metadata: metadataOf(call), request: call.request, deadline_ms: call.getDeadline() - Date.now(),
        peer: call.getPeer(), most, connections: connections.size });
    }
    setTimeout(() => { underWay--; end(call, callback); }, call.request.wait_ms);
  },
  Find(call, callback) {
    say({ method: 'Find', metadata: metadataOf(call), request: call.request });
    const reply = done.get(call.request.idempotency_key);
    callback(reply ? null : { code: grpc.status.NOT_FOUND, details: 'never heard of it' }, reply);
  },
  Flow(call, callback) { callback({ code: grpc.status.UNIMPLEMENTED }); },
});

// grpc.health.v1, by hand: two small messages.
const bytes = (value) => value;
server.addService({ Check: { path: '/grpc.health.v1.Health/Check', requestStream: false, responseStream: false,
  requestSerialize: bytes, requestDeserialize: bytes, responseSerialize: bytes, responseDeserialize: bytes } },
{ Check: (call, callback) => { say({ method: 'Check' }); callback(null, Buffer.from([8, serving ? 1 : 2])); } });

if (options.reflection) {
  const both = new ReflectionService(definition);
  if (options.reflection === 'v1') both.v1.addToServer(server);
  else both.v1Alpha.addToServer(server);
}

function credentials() {
  if (!options.tls) return grpc.ServerCredentials.createInsecure();
  const { cert, key, ca } = options.tls;
  return grpc.ServerCredentials.createSsl(ca ? fs.readFileSync(ca) : null,
    [{ cert_chain: fs.readFileSync(cert), private_key: fs.readFileSync(key) }], Boolean(ca));
}

server.bindAsync(`127.0.0.1:${options.port ?? 0}`, credentials(), (error, port) => {
  if (error) throw error;
  say({ port });
});
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  if (line === 'serving') serving = true;
  else if (line === 'not_serving') serving = false;
  else if (line === 'stop') server.tryShutdown(() => process.exit(0));
}).on('close', () => process.exit(0));
