// npm @langchain/openai.
import { ChatOpenAI } from '@langchain/openai'
import { model } from './swarm.mjs'

export const name = 'langchain'

const chatModel = (url, tokens, id = model) => new ChatOpenAI({
  model: id, temperature: 0, maxTokens: tokens, maxRetries: 0, apiKey: 'none needed', useResponsesApi: false,
  configuration: { baseURL: `${url}/v1` },
})

const told = message => ({ finish: message.response_metadata.finish_reason, tokens: message.usage_metadata?.output_tokens })

export async function chat(url, prompt, tokens, id) {
  const a = await chatModel(url, tokens, id).invoke(prompt)
  return { text: a.content, ...told(a) }
}

export async function stream(url, prompt, tokens, each, id) {
  let whole
  for await (const chunk of await chatModel(url, tokens, id).stream(prompt)) {
    if (chunk.content) each(chunk.content)
    whole = whole ? whole.concat(chunk) : chunk
  }
  return { text: whole.content, ...told(whole) }
}

export const mistake = url => chatModel(url, 5, 'gpt-x').invoke('Hello!')

export const fault = e => ({ status: e.status, code: e.code })
