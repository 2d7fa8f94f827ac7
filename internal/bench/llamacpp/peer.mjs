// Computes with llama.cpp what the benchmark asks for, one JSON line each:
//
//   node peer.mjs MODEL.gguf SEQUENCES TOKENS_OF_EACH BATCH
//
// It goes past node-llama-cpp's own scheduling, straight to its binding of llama_decode, so that nothing but
// llama.cpp is measured. Tokens are given, not drawn.
import { createInterface } from "node:readline";
import { getLlama } from "node-llama-cpp";

const [modelPath, sequences, tokensOfEach, batchSize] = process.argv.slice(2).map((v, i) => (i === 0 ? v : Number(v)));
const llama = await getLlama({ gpu: false, build: "never", logLevel: "error", progressLogs: false });
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({ sequences, contextSize: tokensOfEach, batchSize, threads: 1, flashAttention: true });
const { _ctx: decoder } = context;

/** Computes pieces [sequence, position, tokens] in one batch, with logits of each one's last row. */
async function decode(pieces) {
    decoder.initBatch(pieces.reduce((sum, [, , tokens]) => sum + tokens.length, 0));
    for (const [sequence, position, tokens] of pieces) {
        decoder.addToBatch(sequence, position, Uint32Array.from(tokens), Uint32Array.of(tokens.length - 1));
    }
    await decoder.decodeBatch();
}

/** Batches of up to batchSize rows that compute all prompts. */
function batches(prompts) {
    const out = [[]];
    let room = batchSize;
    prompts.forEach((tokens, sequence) => {
        for (let at = 0; at < tokens.length; ) {
            if (room === 0) {
                out.push([]);
                room = batchSize;
            }
            const n = Math.min(room, tokens.length - at);
            out.at(-1).push([sequence, at, tokens.slice(at, at + n)]);
            at += n;
            room -= n;
        }
    });
    return out;
}

async function timed(work) {
    const cpu = process.cpuUsage();
    const began = process.hrtime.bigint();
    await work();
    const wall = Number(process.hrtime.bigint() - began);
    const { user, system } = process.cpuUsage(cpu);
    return { wall_ns: wall, cpu_ns: (user + system) * 1000 };
}

/** Prompts, then steps that go on with given tokens, all sequences together. */
async function run({ prompts, answers }) {
    prompts.forEach((_, sequence) => decoder.disposeSequence(sequence));
    const prefill = await timed(async () => {
        for (const batch of batches(prompts)) await decode(batch);
    });
    const rest = await timed(async () => {
        for (let i = 0; i < answers[0].length; i++) {
            await decode(answers.map((tokens, sequence) => [sequence, prompts[sequence].length + i, [tokens[i]]]));
        }
    });
    return { prefill, decode: rest };
}

const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
say({ ready: llama.systemInfo, threads: decoder.getThreads() });
for await (const line of createInterface({ input: process.stdin })) say(await run(JSON.parse(line)));
process.exit(0);
