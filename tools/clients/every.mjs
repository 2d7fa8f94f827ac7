// What every client must do alike.
import assert from 'node:assert/strict'
import { check, thrown } from './report.mjs'

const story = 'Tell me a long story about a fox and a lantern.'
const length = 80 // tokens: enough to die in the middle of

// undisturbed is the text that no failure may change.
export async function undisturbed(client, swarm) {
  return (await client.chat(swarm.url, story, length)).text
}

const streamed = async (client, swarm, seen = []) => client.stream(swarm.url, story, length, piece => seen.push(piece))

export async function talks(client, swarm) {
  await check(`${client.name}: chat`, async () => {
    const a = await client.chat(swarm.url, 'What is the capital of France?', 60)
    assert.match(a.text, /Paris/)
    assert.equal(a.finish, 'stop')
    assert.ok(a.tokens > 0)
  })
  await check(`${client.name}: streaming`, async () => {
    const seen = []
    const a = await streamed(client, swarm, seen)
    assert.equal(a.text, await undisturbed(client, swarm))
    assert.equal(seen.join(''), a.text)
    assert.ok(seen.length > 20, `${length} tokens came in ${seen.length} pieces`)
    assert.equal(a.finish, 'length')
    assert.equal(a.tokens, length)
  })
  await check(`${client.name}: an unknown model is an error of its own`, async () => {
    const e = await thrown(client.mistake(swarm.url))
    assert.deepEqual(client.fault(e), { status: 404, code: 'model_not_found' })
  })
}

// A node dies in the middle and others hold its layers.
export async function outlives(client, swarm, want) {
  const pids = async () => (await swarm.status()).nodes.map(n => n.pid).sort()
  for (const [how, ask] of [['a stream', () => streamed(client, swarm)], ['an answer', () => client.chat(swarm.url, story, length)]]) {
    await check(`${client.name}: ${how} outlives a node`, async () => {
      const before = await pids()
      await swarm.arm(1, 40, 'kill')
      const a = await ask()
      assert.equal(a.text, want)
      assert.equal(a.finish, 'length')
      if (a.rescues !== undefined) assert.equal(a.rescues, 1)
      await swarm.recovered()
      assert.notDeepEqual(await pids(), before, 'no node died')
    })
  }
}

// The only node falls silent in the middle and does not return.
export async function learns(client, swarm, want) {
  await check(`${client.name}: a lost stream is an error after the text so far`, async () => {
    await swarm.arm(0, 40, 'stop')
    const seen = []
    await thrown(streamed(client, swarm, seen))
    const text = seen.join('')
    assert.ok(text !== '' && text !== want && want.startsWith(text), `before the error came ${JSON.stringify(text)}`)
  })
  await swarm.wake()
  await check(`${client.name}: a lost answer is a 503`, async () => {
    await swarm.arm(0, 40, 'stop')
    const e = await thrown(client.chat(swarm.url, story, length))
    assert.deepEqual(client.fault(e), { status: 503, code: 'no_way_on' })
  })
  await swarm.wake()
}
