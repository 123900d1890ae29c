// Four of the five services, by the usual gRPC library of Node.js:
//     node grpc_service.cjs messaging|notification|media|user PORT CERTIFICATES
// CERTIFICATES is a folder with ca.pem, NAME.pem and NAME.key. Only callers whose certificate names them
// CALLER below are answered. A call that comes again, with an idempotency key that was seen, gets the
// answer it got before and does nothing twice. SIGTERM ends calls under way and leaves.
const { createHash } = require("node:crypto");
const { readFileSync } = require("node:fs");
const path = require("node:path");
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");
const { ReflectionService } = require("@grpc/reflection");

const CALLER = "spiffe://cluster.local/ns/whispr/sa/scheduling-service";
const DAY_MS = 86400000;

const idOf = (key) => createHash("sha256").update(key).digest("hex").slice(0, 12);
const effects = new Map(); // idempotency key -> the answer; a real service keeps it beside what it did

const SERVICES = {
  messaging: {
    SendScheduledMessage: (message, call) => ({ message_id: `message-${idOf(call.key)}`, attempt: call.attempt }),
    CleanupExpiredMessages: (cleanup) => ({ count: 12 * Math.max(cleanup.older_than_days, 1) }),
  },
  notification: {
    SendDelayedNotification: (notification, call) => ({ notification_id: `${notification.channel}-${idOf(call.key)}` }),
    CleanupHistory: () => ({ count: 340 }),
  },
  media: {
    CompressFiles: () => ({ files: 17, bytes_saved: 73400320 }),
    CleanupTemporaryFiles: () => ({ files: 4, bytes_saved: 1048576 }),
  },
  user: {
    BuildActivityReport: (period) => ({
      sessions_by_day: Object.fromEntries([...Array(Math.min(period.days, 31)).keys()].map((day) =>
        [new Date(Date.now() - day * DAY_MS).toISOString().slice(0, 10), 100 + day])),
    }),
    CleanupInactiveAccounts: () => ({ count: 3 }),
  },
};

function refusal(code, details) {
  return Object.assign(new Error(details), { code, details });
}

/** The name that a caller's certificate proves. */
function callerOf(call) {
  const { sslPeerCertificate } = call.getAuthContext();
  return (sslPeerCertificate?.subjectaltname ?? "").split(", ").filter((name) => name.startsWith("URI:"))
    .map((name) => name.slice(4));
}

function answering(method, act) {
  return (call, reply) => {
    const key = call.metadata.get("idempotency-key")[0];
    const attempt = Number(call.metadata.get("perdura-attempt")[0]);
    if (!callerOf(call).includes(CALLER)) return reply(refusal(grpc.status.PERMISSION_DENIED, "who are you?"));
    if (!key) return reply(refusal(grpc.status.INVALID_ARGUMENT, "a call needs an idempotency-key"));
    const isNew = !effects.has(key);
    if (isNew) effects.set(key, act(call.request, { key, attempt }));
    console.log(JSON.stringify({ method, key, attempt, new: isNew, request: call.request }));
    reply(null, effects.get(key));
  };
}

/** Asked before a message is sent again: whether it was sent. */
function findMessageByKey(call, reply) {
  const key = call.metadata.get("idempotency-key")[0];
  if (!callerOf(call).includes(CALLER)) return reply(refusal(grpc.status.PERMISSION_DENIED, "who are you?"));
  if (!effects.has(key)) return reply(refusal(grpc.status.NOT_FOUND, "no message with this key"));
  return reply(null, effects.get(key));
}

const [name, port, certificates] = process.argv.slice(2);
const file = (end) => readFileSync(path.join(certificates, end));
const definition = loader.loadSync(path.join(__dirname, "protos", `${name}.proto`),
  { keepCase: true, enums: String, defaults: true });
const title = `${name[0].toUpperCase()}${name.slice(1)}Service`;
const service = grpc.loadPackageDefinition(definition)[name][title].service;
const methods = Object.fromEntries(Object.entries(SERVICES[name])
  .map(([method, act]) => [method, answering(`${name}.${method}`, act)]));
if (name === "messaging") methods.FindMessageByKey = findMessageByKey;

const server = new grpc.Server();
server.addService(service, methods);
new ReflectionService(definition).addToServer(server);
server.bindAsync(`127.0.0.1:${port}`, grpc.ServerCredentials.createSsl(file("ca.pem"),
  [{ cert_chain: file(`${name}.pem`), private_key: file(`${name}.key`) }], true), (error, bound) => {
  if (error) throw error;
  console.log(JSON.stringify({ listening: bound }));
});
process.on("SIGTERM", () => server.tryShutdown(() => process.exit(0)));
