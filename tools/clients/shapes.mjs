// Structured output, tools and embeddings with every client. The model has random
// weights: what it says has a shape only because the gateway gives it one.
import assert from 'node:assert/strict'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai'
import { embedMany, generateObject, generateText, streamObject, tool } from 'ai'
import OpenAI from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { z } from 'zod'
import { check, thrown } from './report.mjs'

const model = 'caller'

// Everything is bounded: a model that babbles ends only where it must.
const Person = z.object({
  name: z.string().regex(/^[A-Z][a-z]{2,8}$/),
  age: z.int().min(0).max(150),
  kind: z.enum(['child', 'adult']),
  pets: z.array(z.object({ species: z.enum(['cat', 'dog']) })).max(2),
  email: z.string().regex(/^[a-z]{1,8}@[a-z]{1,8}\.org$/).nullable(),
})
const Place = z.object({ city: z.enum(['Oslo', 'Rome', 'Bern']) })
const prompt = 'Describe a person.'
const messages = [{ role: 'user', content: prompt }]

async function official(url) {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none needed', maxRetries: 0 })
  const wish = { model, messages, temperature: 0.8, seed: 3, max_completion_tokens: 400 }
  await check('openai: parse with a zod schema', async () => {
    const a = await client.chat.completions.parse({ ...wish, response_format: zodResponseFormat(Person, 'person') })
    assert.equal(a.choices[0].finish_reason, 'stop')
    Person.parse(a.choices[0].message.parsed)
  })
  await check('openai: a stream of JSON', async () => {
    const runner = client.chat.completions.stream({ ...wish, response_format: zodResponseFormat(Person, 'person') })
    Person.parse((await runner.finalChatCompletion()).choices[0].message.parsed)
  })
  await check('openai: an answer cut off is an error of the helper', async () => {
    const e = await thrown(client.chat.completions.parse({ ...wish, max_completion_tokens: 5, response_format: zodResponseFormat(Person, 'person') }))
    assert.equal(e.constructor.name, 'LengthFinishReasonError')
  })
  for (const stream of [false, true]) {
    await check(`openai: the runner of tools, stream ${stream}`, async () => {
      const seen = []
      const runner = client.chat.completions.runTools({
        ...wish, stream, tool_choice: { type: 'function', function: { name: 'weather' } },
        tools: [{ type: 'function', function: { name: 'weather', parse: t => Place.parse(JSON.parse(t)), function: p => { seen.push(p.city); return '12 degrees' }, parameters: z.toJSONSchema(Place), strict: true } }],
      })
      await runner.done()
      assert.equal(seen.length, 1)
      assert.equal(runner.messages.at(-1).role, 'tool')
    })
  }
  await check('openai: a schema that cannot be held to is named', async () => {
    const response_format = { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object', patternProperties: {} } } }
    const e = await thrown(client.chat.completions.create({ ...wish, response_format }))
    assert.deepEqual([e.status, e.code, e.param], [400, 'invalid_json_schema', 'response_format.json_schema.schema'])
    assert.match(e.message, /patternProperties/)
  })
  await check('openai: embeddings', async () => {
    const input = ['a fox', 'a lantern']
    const packed = await client.embeddings.create({ model, input }) // this client asks for base64 and unpacks it
    const plain = await client.embeddings.create({ model, input, encoding_format: 'float' })
    for (const i of [0, 1]) {
      assert.equal(packed.data[i].embedding.length, 64)
      packed.data[i].embedding.forEach((x, at) => assert.ok(Math.abs(x - plain.data[i].embedding[at]) < 1e-6))
    }
    assert.ok(plain.usage.total_tokens > 2)
  })
}

async function vercel(url) {
  const provider = createOpenAICompatible({ name: 'hecate', baseURL: `${url}/v1`, includeUsage: true, supportsStructuredOutputs: true })
  const wish = { model: provider(model), prompt, temperature: 0.8, seed: 5, maxOutputTokens: 400, maxRetries: 0 }
  await check('ai: generateObject', async () => {
    const a = await generateObject({ ...wish, schema: Person })
    Person.parse(a.object)
    assert.equal(a.finishReason, 'stop')
  })
  await check('ai: streamObject', async () => {
    const answer = streamObject({ ...wish, schema: Person, onError: () => {} })
    let parts = 0
    for await (const _ of answer.partialObjectStream) parts++
    Person.parse(await answer.object)
    assert.ok(parts > 3, `${parts} parts`)
  })
  await check('ai: tools', async () => {
    const a = await generateText({
      ...wish, toolChoice: 'required', tools: { weather: tool({ inputSchema: Place, execute: async ({ city }) => `${city}: 12 degrees` }) },
    })
    assert.equal(a.finishReason, 'tool-calls')
    assert.equal(a.toolCalls[0].toolName, 'weather')
    Place.parse(a.toolCalls[0].input)
    assert.match(a.toolResults[0].output, /12 degrees/)
  })
  await check('ai: embeddings', async () => {
    const { embeddings } = await embedMany({ model: provider.embeddingModel(model), values: ['a fox', 'a lantern', 'a fox'], maxRetries: 0 })
    assert.deepEqual(embeddings.map(e => e.length), [64, 64, 64])
    assert.deepEqual(embeddings[0], embeddings[2])
  })
}

async function chain(url) {
  const chat = new ChatOpenAI({
    model, temperature: 0.8, maxTokens: 400, maxRetries: 0, apiKey: 'none needed', useResponsesApi: false, modelKwargs: { seed: 7 },
    configuration: { baseURL: `${url}/v1` },
  })
  for (const method of ['jsonSchema', 'functionCalling']) {
    await check(`langchain: withStructuredOutput by ${method}`, async () => {
      Person.parse(await chat.withStructuredOutput(Person, { method, name: 'person' }).invoke(prompt))
    })
  }
  await check('langchain: bindTools', async () => {
    const bound = chat.bindTools([{ type: 'function', function: { name: 'weather', parameters: z.toJSONSchema(Place) } }], { tool_choice: 'required' })
    const a = await bound.invoke(prompt)
    assert.ok(a.tool_calls.length > 0)
    for (const c of a.tool_calls) Place.parse(c.args)
    let whole
    for await (const chunk of await bound.stream(prompt)) whole = whole ? whole.concat(chunk) : chunk
    assert.deepEqual(whole.tool_calls.map(c => c.args), a.tool_calls.map(c => c.args))
  })
  await check('langchain: embeddings', async () => {
    const e = new OpenAIEmbeddings({ model, apiKey: 'none needed', maxRetries: 0, configuration: { baseURL: `${url}/v1` } })
    const [fox] = await e.embedDocuments(['a fox', 'a lantern'])
    assert.deepEqual(fox, await e.embedQuery('a fox'))
    assert.equal(fox.length, 64)
  })
}

// A node dies in the middle of an answer that follows a schema.
async function outlives(swarm) {
  await check('openai: a shaped answer outlives a node', async () => {
    const client = new OpenAI({ baseURL: `${swarm.url}/v1`, apiKey: 'none needed', maxRetries: 0 })
    const wish = { model, messages, temperature: 0.8, seed: 9, max_completion_tokens: 400, response_format: zodResponseFormat(Person, 'person') }
    const want = (await client.chat.completions.parse(wish)).choices[0].message
    await swarm.arm(1, 20, 'kill')
    const a = await client.chat.completions.parse(wish)
    assert.equal(a.choices[0].message.content, want.content)
    assert.ok(a.hecate.rescues >= 1, 'no node died')
  })
}

export async function shapes(swarm) {
  await official(swarm.url)
  await vercel(swarm.url)
  await chain(swarm.url)
  await outlives(swarm)
}
