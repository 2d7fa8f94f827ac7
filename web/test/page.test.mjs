import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { browse, crowd, faults, feed, freePort, node, root, tempFolder, up, visit } from './kit.mjs';

let browser, swarm, port, data, here;

const shoot = async (page, name, options = {}) => {
  if (process.env.HECATE_SHOTS) await page.screenshot({ path: path.join(root, 'docs', name), ...options });
};
const states = (page) => page.locator('.row-node .state').allTextContents();

before(async () => {
  browser = await browse();
  data = tempFolder();
  port = await freePort();
  swarm = await up(port, data, '--allow-chaos');
  here = await visit(browser, swarm.url);
});

after(async () => {
  await browser?.close();
  await swarm?.stop();
  fs.rmSync(data, { recursive: true, force: true });
});

test('loads in one request and shows three nodes', async () => {
  const { page, seen } = here;
  await page.locator('.link.live').waitFor();
  await page.locator('.row-node').nth(2).waitFor();
  assert.deepEqual(await page.locator('.row-node h3').allTextContents(), ['desk', 'laptop', 'mini']);
  await page.getByRole('heading', { level: 1, name: 'Three machines answer as one' }).waitFor();
  const byHost = seen.requests.filter((u) => !u.startsWith('data:'));
  assert.deepEqual(byHost, [swarm.url, `${swarm.url}v1/swarm/live`], 'requests of the first load');
  const load = await page.evaluate(() => performance.getEntriesByType('navigation')[0].toJSON());
  const live = await page.evaluate(() => performance.getEntriesByType('resource').find((r) => r.name.endsWith('/live'))?.responseStart ?? performance.now());
  console.log(`first load: 1 document, ${load.transferSize} bytes on the wire, ${load.decodedBodySize} in all; loaded after ${Math.round(load.loadEventEnd)} ms, live stream from ${Math.round(live)} ms`);
  assert.deepEqual(seen.errors, []);
});

test('pointing at a node, also by keyboard, says what its death would mean', async () => {
  const { page } = here;
  const block = page.locator('.block', { hasText: 'desk' }).first();
  await block.focus();
  await page.locator('.caption', { hasText: 'If desk dies, another copy takes over.' }).waitFor();
  await page.keyboard.press('Tab');
  await page.locator('.caption', { hasText: 'If laptop dies' }).waitFor();
});

test('the first press of Tab skips to the chat', async () => {
  const { page, context } = await visit(browser, swarm.url);
  await page.locator('.link.live').waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.className), 'skip');
  await context.close();
});

test('chats', async () => {
  const { page, seen } = here;
  await page.getByLabel('Your question').fill('Tell me a long story about a fox and a lantern.');
  await page.keyboard.press('Enter');
  await page.locator('.turn[data-role=assistant][data-state=done]').waitFor();
  assert.match(await page.locator('.turn[data-role=assistant] .text').innerText(), /\w+ \w+ \w+/);
  assert.match(await page.locator('.turn .note').innerText(), /^\d+ tokens in [\d.]+ s/);
  assert.deepEqual(seen.errors, []);
});

test('an answer survives a kill, and the place is marked', async () => {
  const { page, seen } = here;
  await page.getByRole('button', { name: 'Start over' }).click();
  for (let n = 0; n < 3 && (await page.locator('.mark-rescue').count()) === 0; n++) { // an answer may be over before its death
    await page.getByLabel('its last machine').check();
    await page.getByLabel('Your question').fill('Tell me a long story about a fox and a lantern.');
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await page.locator('.turn[data-role=assistant]').nth(n).and(page.locator('[data-state=done]')).waitFor();
    await page.locator('.mark-rescue').first().waitFor({ timeout: 3000 }).catch(() => undefined);
  }
  assert.match(await page.locator('.mark-rescue').first().innerText(), /^\w+ failed here; .+ after [\d.]+\s(ms|s)$/);
  assert.match(await page.locator('.turn .note').last().innerText(), /survived one failure/);
  const text = await page.locator('.turn[data-role=assistant] .text').last().innerText();
  assert.ok(text.split('failed here')[1].length > 60, 'text after the failure');
  await page.locator('.events li[data-kind=answer_rescued]').first().waitFor();
  await page.waitForFunction(() => [...document.querySelectorAll('.row-node .state')].every((s) => s.textContent === 'serving'));
  await page.locator('.lede', { hasText: 'two whole copies' }).waitFor();
  await page.mouse.move(0, 0);
  await shoot(page, 'page-light.png');
  assert.deepEqual(seen.errors, []);
});

test('pauses a node, with the admin token only, and resumes it', async () => {
  const { page } = here;
  const token = JSON.parse(fs.readFileSync(path.join(data, 'admin.json'), 'utf8')).token;
  const use = page.getByRole('button', { name: 'Use these' });
  await page.getByRole('button', { name: 'Pause laptop' }).click();
  await page.getByLabel('Admin token').fill('wrong');
  await use.click();
  await page.getByText('The admin token was refused.').waitFor();
  await page.getByLabel('Admin token').fill(token);
  await use.click();
  await page.getByRole('button', { name: 'Resume laptop' }).waitFor();
  assert.deepEqual(await states(page), ['serving', 'paused', 'serving']);
  await page.locator('.events', { hasText: 'an operator wants node laptop paused' }).waitFor();
  await page.getByRole('button', { name: 'Resume laptop' }).click();
  await page.getByRole('button', { name: 'Pause laptop' }).waitFor();
});

test('pulls a plug and puts it back', async () => {
  const { page } = here;
  await page.getByRole('button', { name: 'Pull the plug of mini' }).click();
  await page.locator('.row-node', { hasText: 'mini' }).locator('.state', { hasText: /unplugged|dead/ }).waitFor();
  await page.locator('.lane .name', { hasText: 'broken' }).first().waitFor();
  await page.getByRole('button', { name: 'Plug in mini' }).click();
  await page.locator('.lede', { hasText: 'two whole copies' }).waitFor();
});

test('is accessible: light, dark, on a phone, with the dialog open', async () => {
  for (const options of [{}, { colorScheme: 'dark' }, { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }]) {
    const { page, context } = await visit(browser, swarm.url, options);
    await page.locator('.row-node').nth(2).waitFor();
    await page.locator('.events li').first().waitFor();
    assert.deepEqual(await faults(page), [], JSON.stringify(options));
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, 'nothing sticks out sideways');
    if (options.viewport) await shoot(page, 'page-phone.png');
    else if (options.colorScheme) await shoot(page, 'page-dark.png');
    await page.getByRole('button', { name: 'Keys' }).click();
    await page.getByLabel('API key').waitFor();
    assert.deepEqual(await faults(page), [], `dialog, ${JSON.stringify(options)}`);
    await context.close();
  }
});

test('comes back by itself when the gateway does', async () => {
  const { page } = here;
  await swarm.stop();
  await page.locator('.link.lost', { hasText: 'gateway gone' }).waitFor();
  assert.equal(await page.locator('.row-node').count(), 3, 'what was known stays in sight');
  swarm = await up(port, data, '--allow-chaos');
  await page.locator('.link.live').waitFor();
  await page.waitForFunction(() => [...document.querySelectorAll('.row-node .state')].filter((s) => s.textContent === 'serving').length === 3);
});

test('a hundred nodes: what did not change is not touched, and nothing jumps', async () => {
  const gateway = await feed();
  gateway.send(crowd(100));
  const { page, context, seen } = await visit(browser, gateway.url);
  await page.locator('.tile').nth(99).waitFor();
  assert.equal(await page.locator('.block').count(), 100);
  await page.evaluate(() => {
    document.querySelectorAll('.tile').forEach((t) => (t.kept = true));
    window.touched = 0;
    new MutationObserver((all) => (window.touched += all.length)).observe(document.querySelector('.tiles'), { subtree: true, childList: true, attributes: true, characterData: true });
    window.shift = 0;
    new PerformanceObserver((l) => l.getEntries().forEach((e) => (window.shift += e.value))).observe({ type: 'layout-shift' });
    window.frames = [];
    let last = performance.now();
    requestAnimationFrame(function tick(t) { window.frames.push(t - last); last = t; requestAnimationFrame(tick); });
  });
  const frames = 12;
  for (let i = 0; i < frames; i++) {
    const changed = {};
    for (let k = i * 7; k < i * 7 + 10; k++) changed[`node/node${k + 1}`] = node(`node${k + 1}`, [(k % 5) * 16, (k % 5) * 16 + 15], (k % 19) / 20);
    gateway.send({ ...changed, pulse: { tokens_per_second: 900 + i, first_token_ms: 20, gap_ms: null, running: 8, queued: i } });
    await new Promise((r) => setTimeout(r, 150));
  }
  await page.waitForFunction(() => document.querySelector('.tiles').textContent.length > 0 && window.touched > 0);
  const seenThere = await page.evaluate(() => ({ kept: [...document.querySelectorAll('.tile')].every((t) => t.kept), touched: window.touched, shift: window.shift, frames: window.frames.sort((a, b) => a - b) }));
  console.log(`100 nodes: ${seenThere.touched} changes of the page for ${frames * 10} changes of nodes; between frames ${seenThere.frames[Math.floor(seenThere.frames.length / 2)].toFixed(1)} ms (median), ${seenThere.frames.at(-2).toFixed(1)} ms (second worst)`);
  assert.equal(seenThere.kept, true, 'tiles were made anew');
  assert.ok(seenThere.touched <= frames * 10 * 3, `${seenThere.touched} changes of the page`);
  assert.ok(seenThere.shift < 0.005, `things jumped: ${seenThere.shift}`);
  assert.deepEqual(await faults(page), []);
  await shoot(page, 'page-hundred.png', { fullPage: false });
  assert.deepEqual(seen.errors, []);
  await context.close();
  gateway.close();
});

test('without a key it asks for one, and goes on with it', async () => {
  const gateway = await feed({ key: 'hk-right' });
  gateway.send(crowd(3));
  const { page, context } = await visit(browser, gateway.url);
  await page.getByRole('heading', { level: 1, name: 'This swarm wants a key' }).waitFor();
  await page.getByRole('button', { name: 'give a key' }).click();
  await page.getByLabel('API key').fill('hk-right');
  await page.getByRole('button', { name: 'Use these' }).click();
  await page.locator('.link.live').waitFor();
  await context.close();
  gateway.close();
});

test('an empty swarm says what to do', async () => {
  const gateway = await feed();
  const { swarm: empty, answers, flows, pool } = crowd(0);
  gateway.send({ swarm: { ...empty, state: 'failed', why: ['no node lives'] }, answers, flows, pool });
  const { page, context } = await visit(browser, gateway.url);
  await page.getByRole('heading', { level: 1, name: 'No machine has joined yet' }).waitFor();
  await page.getByText('hecate node run --join TOKEN').first().waitFor();
  await page.getByText('hecate model add FILE').first().waitFor();
  assert.deepEqual(await faults(page), []);
  await context.close();
  gateway.close();
});

test('who wants little motion sees none', async () => {
  const gateway = await feed();
  const parts = crowd(10);
  gateway.send({ ...parts, flows: [{ model: 'large', count: 2, stages: parts['model/large'].pipelines[0].stages.map((s) => ({ node: s.node, first: s.layers[0], last: s.layers[1] })) }] });
  for (const [reducedMotion, name] of [['reduce', 'none'], ['no-preference', 'beads']]) {
    const { page, context } = await visit(browser, gateway.url, { reducedMotion });
    await page.locator('.flow').waitFor({ state: 'attached' });
    assert.equal(await page.locator('.flow').evaluate((e) => getComputedStyle(e).animationName), name);
    await context.close();
  }
  gateway.close();
});
