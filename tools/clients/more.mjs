// What only OpenAI's own client offers.
import assert from 'node:assert/strict'
import OpenAI from 'openai'
import { check, thrown } from './report.mjs'
import { model } from './swarm.mjs'

const messages = [{ role: 'user', content: 'Tell me a long story about a fox and a lantern.' }]

export async function more(swarm) {
  const client = new OpenAI({ baseURL: `${swarm.url}/v1`, apiKey: 'none needed', maxRetries: 0 })
  await check('openai: models', async () => {
    const list = []
    for await (const m of client.models.list()) list.push(m)
    assert.deepEqual(list.map(m => m.id), [model])
    assert.equal((await client.models.retrieve(model)).created, list[0].created)
    assert.equal((await thrown(client.models.retrieve('gpt-x'))).status, 404)
  })
  await check('openai: completions', async () => {
    const a = await client.completions.create({ model, prompt: 'Once upon a time', max_tokens: 8, temperature: 0 })
    assert.equal(a.usage.completion_tokens, 8)
    let text = ''
    for await (const chunk of await client.completions.create({ model, prompt: 'Once upon a time', max_tokens: 8, temperature: 0, stream: true })) {
      text += chunk.choices[0].text
    }
    assert.equal(text, a.choices[0].text)
  })
  await check('openai: choices, seed, log-probabilities', async () => {
    const wish = { model, messages, n: 3, seed: 4, temperature: 0.9, max_tokens: 15, logprobs: true, top_logprobs: 2 }
    const a = await client.chat.completions.create(wish)
    assert.deepEqual(a.choices.map(c => c.index), [0, 1, 2])
    assert.equal(new Set(a.choices.map(c => c.message.content)).size, 3)
    for (const c of a.choices) assert.equal(c.logprobs.content.map(t => t.token).join(''), c.message.content)
    const again = await client.chat.completions.create(wish)
    assert.deepEqual(again.choices.map(c => c.message.content), a.choices.map(c => c.message.content))
  })
  await check('openai: the helper for streams, stop strings', async () => {
    const wish = { model, messages, max_tokens: 60, temperature: 0 }
    const whole = (await client.chat.completions.create(wish)).choices[0].message.content
    const stop = whole.slice(90, 100)
    const runner = client.chat.completions.stream({ ...wish, stop: ['@@@', stop] })
    const { message, finish_reason } = (await runner.finalChatCompletion()).choices[0]
    assert.equal(message.content, whole.slice(0, whole.indexOf(stop)))
    assert.equal(finish_reason, 'stop')
  })
  await check('openai: a client that leaves', async () => {
    const stop = new AbortController()
    let pieces = 0
    for await (const _ of await client.chat.completions.create({ model, messages, max_tokens: 400, stream: true }, { signal: stop.signal })) {
      if (++pieces === 5) stop.abort()
    }
    assert.ok(pieces < 400, `${pieces} pieces`)
  })
}
