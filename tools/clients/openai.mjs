// npm openai: OpenAI's own client.
import OpenAI from 'openai'
import { model } from './swarm.mjs'

export const name = 'openai'

const client = url => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none needed', maxRetries: 0 })

const question = (prompt, tokens, id = model) => ({ model: id, temperature: 0, max_completion_tokens: tokens, messages: [{ role: 'user', content: prompt }] })

export async function chat(url, prompt, tokens, id) {
  const a = await client(url).chat.completions.create(question(prompt, tokens, id))
  return { text: a.choices[0].message.content, finish: a.choices[0].finish_reason, tokens: a.usage.completion_tokens, rescues: a.hecate?.rescues }
}

// stream calls each with every piece of text.
export async function stream(url, prompt, tokens, each, id) {
  const events = await client(url).chat.completions.create({ ...question(prompt, tokens, id), stream: true, stream_options: { include_usage: true } })
  const out = { text: '' }
  for await (const chunk of events) {
    for (const c of chunk.choices) {
      if (c.delta.content) each(c.delta.content)
      out.text += c.delta.content ?? ''
      out.finish = c.finish_reason ?? out.finish
    }
    out.tokens = chunk.usage?.completion_tokens
    out.rescues = chunk.hecate?.rescues
  }
  return out
}

// mistake asks a model that does not exist; what it throws is described by fault.
export const mistake = url => client(url).chat.completions.create({ ...question('Hello!', 5), model: 'gpt-x' }, { maxRetries: 3 })

export const fault = e => ({ status: e.status, code: e.code })
