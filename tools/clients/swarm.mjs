// Starts a swarm with `hecate up` and makes its nodes fail, as an operator would.
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'

export const model = 'hecate-demo'

// What each wait may take on a busy machine.
const readyWithin = 60_000
const stopWithin = 15_000

export class Swarm {
  static async up(binary, ...args) {
    const s = new Swarm()
    s.data = await mkdtemp(join(tmpdir(), 'hecate-clients-'))
    s.process = spawn(binary, ['up', '--json', '--listen', '127.0.0.1:0', '--data', s.data, '--allow-chaos', ...args],
      { stdio: ['ignore', 'pipe', 'pipe'] })
    s.log = ''
    s.process.stderr.on('data', b => { s.log = (s.log + b).slice(-20_000) })
    s.ended = new Promise(resolve => s.process.once('close', resolve))
    try {
      s.url = await s.#ready()
    } catch (e) {
      await s.stop()
      throw e
    }
    return s
  }

  async #ready() {
    const lines = createInterface({ input: this.process.stdout })
    const ready = new Promise(resolve => lines.on('line', line => {
      const event = JSON.parse(line)
      if (event.event === 'ready') resolve(event.url)
    }))
    const url = await Promise.race([ready, this.ended, pause(readyWithin, undefined, { ref: false })])
    if (typeof url !== 'string') throw new Error(`hecate up is not ready:\n${this.log}`)
    return url
  }

  async stop() {
    this.process.kill('SIGINT')
    const late = pause(stopWithin, 'late', { ref: false })
    if (await Promise.race([this.ended, late]) === 'late') this.process.kill('SIGKILL')
    await this.ended
    await rm(this.data, { recursive: true, force: true })
  }

  async status() {
    return (await fetch(`${this.url}/v1/swarm`)).json()
  }

  // arm makes the node that runs a stage of the next request fail by itself, just
  // before it computes a token.
  async arm(stage, token, action) {
    const r = await fetch(`${this.url}/v1/swarm/chaos/arm`, { method: 'POST', body: JSON.stringify({ stage, at_token: token, action }) })
    if (!r.ok) throw new Error(`arm: ${r.status} ${await r.text()}`)
  }

  // recovered waits until all is whole again and a question is answered.
  async recovered() {
    const body = JSON.stringify({ model, max_tokens: 1, messages: [{ role: 'user', content: 'Hello!' }] })
    for (const until = Date.now() + 30_000; Date.now() < until; await pause(50)) {
      if ((await this.status()).state !== 'healthy') continue
      const r = await fetch(`${this.url}/v1/chat/completions`, { method: 'POST', body })
      await r.arrayBuffer()
      if (r.ok) return
    }
    throw new Error('the swarm did not recover')
  }

  // wake continues the nodes that a failure of the kind "stop" froze.
  async wake() {
    for (const pid of (await readdir('/proc')).filter(name => /^\d+$/.test(name))) {
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
      if (line.includes(join(this.data, 'nodes'))) process.kill(Number(pid), 'SIGCONT')
    }
    await this.recovered()
  }
}
