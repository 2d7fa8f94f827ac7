// Makes a golden file: what llama.cpp (through node-llama-cpp) does with the demo model, for our engine to be compared with.
//
//   node golden.mjs OUT.json MODEL.gguf [MODEL.gguf ...]
//
// node-llama-cpp hands out probabilities, not raw logits, so the file has log-probabilities.  They differ from the logits by one
// constant per position: compare differences between tokens, or apply log-softmax to the engine's logits first.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { getLlama } from "node-llama-cpp";

const CONTEXT = 512; // tokens, the model's own
const GENERATED = 64; // greedy tokens per prompt
const TOP = 5;
const here = dirname(fileURLToPath(import.meta.url));

// Options of one evaluation step that asks for the whole distribution after its last token, unchanged by temperature or filters.
const DISTRIBUTION = { generateNext: { probabilities: true, options: { temperature: 1, topK: 0, topP: 1, minP: 0 } } };

/** The prompt as the chat template writes it; the tokenizer puts <s> in front. */
function chatML(messages) {
    return messages.map(({ role, content }) => `<|im_start|>${role}\n${content}<|im_end|>\n`).join("") + "<|im_start|>assistant\n";
}

function cases() {
    const { chat, raw } = JSON.parse(readFileSync(join(here, "prompts.json"), "utf8"));
    const numbered = (kind) => (fields, i) => ({ name: `${kind}-${String(i).padStart(2, "0")}`, kind, ...fields });
    return [
        ...chat.map((messages) => ({ messages, prompt: chatML(messages) })).map(numbered("chat")),
        ...raw.map((prompt) => ({ prompt })).map(numbered("raw")),
    ];
}

/** Evaluates tokens after what the sequence already holds; returns [token, log-probability] pairs, the likeliest first. */
async function distribution(sequence, tokens) {
    const input = [...tokens.slice(0, -1), [tokens.at(-1), DISTRIBUTION]];
    const output = await sequence.controlledEvaluate(input);
    const { probabilities } = output.at(-1).next;
    return [...probabilities].map(([token, p]) => [token, Math.log(p)]).sort((a, b) => b[1] - a[1]);
}

/** Greedy continuation of a prompt: the prompt in one batch, then one token at a time. */
async function run(model, sequence, promptIds) {
    await sequence.clearHistory();
    let ranked = await distribution(sequence, promptIds);
    const result = { top5: ranked.slice(0, TOP).map(([token, p]) => [token, rounded(p, 6)]), ids: [], gaps: [] };
    while (result.ids.length < GENERATED && promptIds.length + result.ids.length < CONTEXT) {
        const [token] = ranked[0];
        result.ids.push(token);
        result.gaps.push(rounded(ranked[0][1] - ranked[1][1], 3));
        if (model.isEogToken(token)) break;
        ranked = await distribution(sequence, [token]);
    }
    return { ...result, text: model.detokenize(result.ids) };
}

function rounded(number, digits) {
    return Number(number.toFixed(digits));
}

async function runFile(llama, path, list) {
    const model = await llama.loadModel({ modelPath: path });
    const context = await model.createContext({ contextSize: CONTEXT, batchSize: CONTEXT, threads: 1, flashAttention: true });
    const sequence = context.getSequence();
    for (const one of list) {
        const ids = [model.tokens.bos, ...model.tokenize(one.prompt, true)];
        one.prompt_ids ??= ids;
        if (ids.join() !== one.prompt_ids.join()) throw new Error(`${path} tokenizes ${one.name} differently from the first file`);
        (one.runs ??= {})[basename(path)] = await run(model, sequence, ids);
    }
    await context.dispose();
    await model.dispose();
}

function identity(path) {
    const bytes = readFileSync(path);
    return { sha256: createHash("sha256").update(bytes).digest("hex"), bytes: bytes.length };
}

const [out, ...files] = process.argv.slice(2);
if (!out || files.length === 0) {
    console.error("usage: node golden.mjs OUT.json MODEL.gguf [MODEL.gguf ...]");
    process.exit(2);
}
const llama = await getLlama({ gpu: false, build: "never", logLevel: "error" });
const list = cases();
for (const file of files) await runFile(llama, file, list);
const golden = {
    made_with: `node-llama-cpp ${JSON.parse(readFileSync(join(here, "package.json"), "utf8")).dependencies["node-llama-cpp"]}, its prebuilt llama.cpp for linux-x64`,
    settings: `CPU, 1 thread, context ${CONTEXT}, F16 KV cache, flash attention as in our engine, prompt in one batch, then one token at a time, greedy; an end-of-generation token is the last id`,
    bos: "prompt_ids start with <s> (1), which is not part of prompt",
    special: "control tokens in prompt are parsed as such",
    unit: "log-probability",
    top5: "[token id, log-probability] of the token after the prompt; differences between them are differences of logits",
    gaps: "distance between the two likeliest tokens at each generated token: where it is small, another engine may rightly choose the other one",
    files: Object.fromEntries(files.map((file) => [basename(file), identity(file)])),
    cases: list,
};
writeFileSync(out, JSON.stringify(golden, null, 1) + "\n");
console.log(`${list.length} prompts, ${files.length} files: ${out}`);
process.exit(0);
