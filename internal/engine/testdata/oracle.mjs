// Makes oracle.json: what llama.cpp says about the random models of
// oracle_test.go. In an empty folder:
//
//   npm i -E --omit=optional node-llama-cpp@3.21.1 @node-llama-cpp/linux-x64@3.21.1
//   go test -run TestAgainstOracle hecate/internal/engine -args -oracle "$PWD"
//   cp .../internal/engine/testdata/oracle.mjs . && node oracle.mjs > oracle.json
import {getLlama, LlamaLogLevel} from "node-llama-cpp";
import fs from "fs";

const llama = await getLlama({gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: 1});
const {models, tokens} = JSON.parse(fs.readFileSync("list.json"));
const out = {};
for (const name of Object.keys(models).sort()) {
  const model = await llama.loadModel({modelPath: models[name]});
  const context = await model.createContext({sequences: 1, contextSize: 256, batchSize: 256, threads: 1, flashAttention: true});
  const last = tokens.length - 1;
  const input = tokens.map((t, i) => i === last ? [t, {generateNext: {probabilities: true}}] : t);
  const result = await context.getSequence().controlledEvaluate(input);
  const top = [...result[last].next.probabilities].slice(0, 12);
  out[name] = top.map(([token, p]) => [token, Number(Math.log(p).toFixed(5))]);
  await context.dispose();
  await model.dispose();
}
const lines = Object.entries(out).map(([name, top]) => `${JSON.stringify(name)}: ${JSON.stringify(top)}`);
console.log(`{\n${lines.join(",\n")}\n}`);
process.exit(0);
