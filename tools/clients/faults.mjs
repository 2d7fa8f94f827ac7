// Engines that fail in every way that `hecate chaos upstream` knows, behind a
// gateway without models: a client gets the full text or an exception, and never a
// shortened answer; with an honest engine beside it the full text, as long as
// nothing had been said.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { check } from './report.mjs'

const run = promisify(execFile)
const counted = 'one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen'
const clientsOwn = ['context-length', 'content-filter']
const midStream = ['cut', 'stall', 'malformed', 'no-done']

// started runs a command and gives the first line that says where it listens.
async function started(binary, running, ...args) {
  const child = spawn(binary, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  running.push(child)
  const lines = createInterface({ input: child.stdout })
  const url = new Promise(resolve => lines.on('line', line => {
    const at = line.match(/http:\/\/[\d.:]+/)
    if (at) resolve(at[0])
  }))
  const ended = new Promise(resolve => child.once('close', resolve))
  const at = await Promise.race([url, ended, pause(60_000, undefined, { ref: false })])
  if (typeof at !== 'string') throw new Error(`hecate ${args.join(' ')} does not start`)
  return at
}

const setFault = (url, name) => fetch(`${url}/fault`, { method: 'POST', body: name })

export async function grid(binary, clients) {
  const running = []
  const data = await mkdtemp(join(tmpdir(), 'hecate-faults-'))
  try {
    const gateway = await started(binary, running, 'serve', '--json', '--no-model', '--listen', '127.0.0.1:0', '--data', data, '--token-uses', '0')
    const list = (await run(binary, ['chaos', 'upstream', '--list'])).stdout
    const faults = list.trim().split('\n').map(line => line.split(' ')[0])
    const add = (name, url, models) => run(binary, ['engine', 'add', name, url, '--data', data, '--first-byte', '2s', '--silence', '2s',
      ...models.flatMap(m => ['--model', `${m}=faulty`])])
    const honest = await started(binary, running, 'chaos', 'upstream', '--pace', '0s')
    await add('z-honest', honest, faults.map(f => `two-${f}`))
    for (const fault of faults) {
      const url = await started(binary, running, 'chaos', 'upstream', '--pace', '0s', '--delay', '50ms', '--period', '1h')
      await add(`a-${fault}`, url, [`alone-${fault}`, `two-${fault}`])
      await known(gateway, `alone-${fault}`)
      await setFault(url, fault)
    }
    await Promise.all(clients.flatMap(client => faults.flatMap(fault => ['alone', 'two'].flatMap(where => [
      check(`${client.name}: ${fault}, ${where}`, () => meets(fault, where, false, () => client.chat(gateway, 'Count!', undefined, `${where}-${fault}`))),
      check(`${client.name}: ${fault}, ${where}, stream`, () => meets(fault, where, true, () => client.stream(gateway, 'Count!', undefined, () => {}, `${where}-${fault}`))),
    ]))))
  } finally {
    for (const child of running) child.kill('SIGINT')
    await rm(data, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
}

// known waits until the gateway has seen an engine's model.
async function known(gateway, model) {
  for (const until = Date.now() + 60_000; Date.now() < until; await pause(20)) {
    const r = await fetch(`${gateway}/v1/models/${model}`)
    const m = await r.json()
    if (r.ok && m.hecate.ready) return
  }
  throw new Error(`the gateway does not see ${model}`)
}

async function meets(fault, where, streamed, ask) {
  let answer
  try {
    answer = await ask()
  } catch (e) {
    const excused = where === 'alone' || clientsOwn.includes(fault) || streamed && midStream.includes(fault)
    assert.ok(excused, `the other engine did not answer: ${e}`)
    return
  }
  const byTheOther = where === 'two' && answer.text === counted // it may have been asked first
  assert.ok(!clientsOwn.includes(fault) || byTheOther, `no error, but ${JSON.stringify(answer)}`)
  if (fault === 'filtered' && !byTheOther) return assert.match(answer.finish, /^content.filter$/)
  assert.equal(answer.text, counted)
  assert.equal(answer.finish, 'stop')
}
