// Answers what cron-parser (npm) says, for oracles.py. Reads lines of JSON
// {"cron","zone","after","count"} and writes one line each: an array of seconds since 1970, or
// {"error"}. Run as: node cron_parser.mjs FOLDER, where FOLDER has node_modules/cron-parser.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { resolve } from 'node:path';

const require = createRequire(resolve(process.argv[2], 'package.json'));
const { CronExpressionParser } = require('cron-parser');

function answer({ cron, zone, after, count }) {
  const found = CronExpressionParser.parse(cron, { currentDate: new Date(after * 1000), tz: zone });
  const instants = [];
  for (let i = 0; i < count; i++) instants.push(found.next().getTime() / 1000);
  return instants;
}

for await (const line of createInterface({ input: process.stdin })) {
  let reply;
  try {
    reply = answer(JSON.parse(line));
  } catch (error) {
    reply = { error: String(error.message) };
  }
  process.stdout.write(JSON.stringify(reply) + '\n');
}
