// Official JavaScript clients against real swarms. Usage: node main.mjs BINARY
import * as ai from './ai.mjs'
import { learns, outlives, talks, undisturbed } from './every.mjs'
import * as langchain from './langchain.mjs'
import { grid } from './faults.mjs'
import { more } from './more.mjs'
import * as openai from './openai.mjs'
import { check, closing } from './report.mjs'
import { shapes } from './shapes.mjs'
import { Swarm } from './swarm.mjs'

const [binary] = process.argv.slice(2)
const clients = [openai, ai, langchain]
process.on('SIGINT', () => process.exit(130)) // the swarm has had it too

async function inSwarm(args, use) {
  const swarm = await Swarm.up(binary, ...args)
  try {
    await use(swarm)
  } finally {
    await swarm.stop()
  }
}

const three = async swarm => {
  const want = await undisturbed(openai, swarm)
  for (const client of clients) await talks(client, swarm)
  await more(swarm)
  for (const client of clients) await outlives(client, swarm, want)
}

const one = async swarm => {
  const want = await undisturbed(openai, swarm)
  for (const client of clients) await learns(client, swarm, want)
}

for (const [name, args, use] of [
  ['three nodes, two copies', [], three],
  ['structured output, tools and embeddings', ['--model', new URL('caller.gguf', import.meta.url).pathname], shapes],
  ['one node, which nobody can replace', ['--nodes', '1', '--copies', '1', '--rescue-time', '300ms'], one],
]) {
  console.log(`# ${name}`)
  try {
    await inSwarm(args, use)
  } catch (e) {
    await check(name, () => { throw e })
  }
}
console.log('# engines that fail, alone and beside an honest one')
try {
  await grid(binary, clients)
} catch (e) {
  await check('engines that fail', () => { throw e })
}
process.exit(closing())
