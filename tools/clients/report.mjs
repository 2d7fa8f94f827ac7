// Runs checks one after the other and counts them.
import assert from 'node:assert/strict'

let passed = 0
let failed = 0

export async function check(name, run) {
  const began = performance.now()
  try {
    await run()
    passed++
    console.log(`ok    ${name} (${Math.round(performance.now() - began)} ms)`)
  } catch (e) {
    failed++
    console.log(`FAIL  ${name}: ${e?.stack ?? e}`)
  }
}

// thrown gives the error that a promise must end with.
export async function thrown(promise) {
  let value
  try {
    value = await promise
  } catch (e) {
    return e
  }
  assert.fail(`no error, but ${JSON.stringify(value)}`)
}

// closing prints the last line and gives the exit code.
export function closing() {
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 && passed > 0 ? 0 : 1
}
