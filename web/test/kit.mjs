// Browsers, swarms, and a gateway that is not there.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

export const root = process.env.ROOT;
const axeSource = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
export const patience = 60_000; // machines that run tests may be slow

/** browse opens Chromium; nothing of it may ask another host. */
export async function browse() {
  return chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
}

/** visit opens a page and notes what goes wrong on it. */
export async function visit(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 960 }, colorScheme: 'light', ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  const seen = { errors: [], requests: [] };
  page.on('pageerror', (e) => seen.errors.push(e.message));
  page.on('console', (m) => { if (m.type() === 'error' && !/Failed to load resource/.test(m.text())) seen.errors.push(m.text()); });
  page.on('request', (r) => seen.requests.push(r.url()));
  await page.goto(url);
  return { page, context, seen };
}

/** faults lists what axe finds wrong with a page. */
export async function faults(page) {
  const cdp = await page.context().newCDPSession(page); // past the page's own policy, which forbids strangers' scripts
  await cdp.send('Runtime.evaluate', { expression: axeSource });
  const { result } = await cdp.send('Runtime.evaluate', {
    awaitPromise: true, returnByValue: true,
    expression: `axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.map((v) => v.id + ': ' + v.help + '\\n  ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + ' ' + (n.any[0]?.message ?? '')).join('\\n  ')))`,
  });
  return result.value;
}

export async function freePort() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** up starts a swarm and waits until it is ready. */
export async function up(port, data, ...args) {
  const child = spawn(process.env.BINARY, ['up', '--listen', `127.0.0.1:${port}`, '--data', data, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  const ended = new Promise((resolve) => child.on('exit', resolve));
  await new Promise((resolve, reject) => {
    const hear = (b) => { said += b; if (/^ready /m.test(said)) resolve(); };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    ended.then(() => reject(new Error(`hecate up ended: ${said}`)));
  });
  return { url: `http://127.0.0.1:${port}/`, async stop() { child.kill('SIGINT'); await ended; } };
}

export const tempFolder = () => fs.mkdtempSync(path.join(os.tmpdir(), 'hecate-page.'));

/** feed is a gateway that shows whatever it is told: the page, and frames. */
export async function feed({ key } = {}) {
  const html = fs.readFileSync(path.join(root, 'internal/web/dist/index.html'));
  const watchers = new Set();
  let rev = 0;
  const parts = {};
  const server = http.createServer((q, s) => {
    if (q.url === '/') return s.setHeader('Content-Type', 'text/html; charset=utf-8').end(html);
    if (key && q.headers.authorization !== `Bearer ${key}`) {
      return s.writeHead(401, { 'Content-Type': 'application/json' }).end(JSON.stringify({ error: { message: 'This gateway wants an API key.', code: null } }));
    }
    if (q.url !== '/v1/swarm/live') return s.writeHead(404).end();
    s.writeHead(200, { 'Content-Type': 'text/event-stream' });
    s.write(`event: history\ndata: []\n\nevent: frame\ndata: ${JSON.stringify({ rev, full: true, parts })}\n\n`);
    watchers.add(s);
    q.on('close', () => watchers.delete(s));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    send(changed) {
      Object.assign(parts, changed);
      rev++;
      for (const s of watchers) s.write(`event: frame\ndata: ${JSON.stringify({ rev, parts: changed })}\n\n`);
    },
    close() { for (const s of watchers) s.destroy(); server.close(); },
  };
}

/** crowd is a swarm of n nodes: copies of one model, each over five of them. */
export function crowd(n) {
  const layers = 80;
  const per = layers / 5;
  const parts = {
    swarm: { state: 'healthy', gateway: 'gateway', version: 'test', generation: 3, chaos: false, links: false, keys: false, started: new Date().toISOString() },
    answers: { running: 0, queued: 0, finished: 0, left: 0, lost: 0, rescues: {}, refused: {} },
    pool: { generation: 1, activated: new Date().toISOString(), map_current: true, writer_deficit: 0, groups: [], sessions: 0, losses: 0, drops: 0, buffered_bytes: 0 },
    flows: [],
  };
  const pipelines = [];
  for (let i = 0; i < n; i++) {
    const at = i % 5;
    const range = [at * per, at * per + per - 1];
    if (at === 0) pipelines.push({ pipeline_id: i / 5, live: true, stages: [] });
    pipelines.at(-1).stages.push({ node: `node${i + 1}`, layers: range });
    parts[`node/node${i + 1}`] = node(`node${i + 1}`, range, 0.1);
    parts.pool.groups.push({ node: `node${i + 1}`, writers: 3, floor: 3, draining: 0, dialing: 0, sessions: 0, ready: true });
  }
  parts['model/large'] = { id: 'large', ready: true, layers, context_length: 8192, bytes: 4e10, pipelines };
  return parts;
}

export function node(id, range, load) {
  return {
    id, alive: true, desired: 'active', latency_ms: 3, load, round_trip_ms: 0.4, memory_used: 6e9, memory_budget: 8e9, tokens_computed: 0, sessions: 1,
    cells: 4096, free_cells: 4000, fragments: [{ model: 'large', layers: range }], if_it_dies: { large: 'copy' }, status: 'alive', since: new Date().toISOString(), tokens_per_second: Math.round(load * 100),
  };
}
