// npm ai (the AI SDK) through its provider for OpenAI-compatible servers.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, streamText } from 'ai'
import { model } from './swarm.mjs'

export const name = 'ai'

const ask = (url, prompt, tokens, id = model) => ({
  model: createOpenAICompatible({ name: 'hecate', baseURL: `${url}/v1`, includeUsage: true })(id),
  prompt, temperature: 0, maxOutputTokens: tokens, maxRetries: 0,
})

export async function chat(url, prompt, tokens, id) {
  const a = await generateText(ask(url, prompt, tokens, id))
  return { text: a.text, finish: a.finishReason, tokens: a.usage.outputTokens }
}

// stream reads the full stream: this client reports failures there, as parts.
export async function stream(url, prompt, tokens, each, id) {
  const answer = streamText({ ...ask(url, prompt, tokens, id), onError: () => {} })
  let text = ''
  for await (const part of answer.fullStream) {
    if (part.type === 'error') throw part.error
    if (part.type === 'text-delta') {
      each(part.text)
      text += part.text
    }
  }
  return { text, finish: await answer.finishReason, tokens: (await answer.usage).outputTokens }
}

export const mistake = url => generateText(ask(url, 'Hello!', 5, 'gpt-x'))

export const fault = e => ({ status: e.statusCode, code: e.data?.error?.code })
