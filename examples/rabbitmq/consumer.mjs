// Works on tasks whose ids come through RabbitMQ: each message is {"task_id": "…"}. The message is
// acknowledged after the report. A task that has ended, or that another worker holds, is left alone.
//
//     node consumer.mjs http://127.0.0.1:7070 amqp://guest:guest@127.0.0.1:5672 perdura.work
// Needs amqplib (npm install amqplib).
import amqp from "amqplib";

const [server, broker, queue] = process.argv.slice(2);

async function call(path, body) {
  const answer = await fetch(server + path, {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)});
  return {status: answer.status, ...await answer.json()};
}

const worker = await call("/v1/workers", {hostname: "consumer", queues: ["default"], version: "1"});
setInterval(() => call(`/v1/workers/${worker.id}:heartbeat`, {}).catch(() => {}), worker.heartbeat_ms);

function report(task, element) {
  return call(`/v1/workers/${worker.id}:report`,
              [{task_id: task.id, lease_token: task.lease_token, ...element}]);
}

function work(task) {
  console.log("works on", task.id);
  return {sum: task.payload.reduce((sum, number) => sum + number, 0)};
}

const connection = await amqp.connect(broker);
const channel = await connection.createChannel();
await channel.assertQueue(queue, {durable: true});
await channel.prefetch(1);
await channel.consume(queue, async (message) => {
  const id = JSON.parse(message.content).task_id;
  const answer = await call(`/v1/workers/${worker.id}:claim`, {task_id: id});
  if (answer.status === 429 || answer.status >= 500) { // its queue is paused or at a limit, or the server is busy
    setTimeout(() => channel.nack(message), 1000);
    return;
  }
  for (const task of answer.tasks ?? []) {
    await report(task, {op: "start"});
    await report(task, {op: "complete", result: work(task)});
  }
  if (answer.status !== 200) console.log("leaves it:", answer.error.message);
  channel.ack(message);
});
console.log("ready");
