// Encodes texts.json with llama.cpp for each GGUF of a folder (see vocab.py) and
// writes ../FOLDER-goldens.json. Needs npm's node-llama-cpp.
//
//     node tokenize.mjs FOLDER
import fs from "node:fs";
import path from "node:path";
import {getLlama} from "node-llama-cpp";

const here = import.meta.dirname;
const folder = process.argv[2];
const texts = JSON.parse(fs.readFileSync(path.join(here, "texts.json"), "utf8"));
const llama = await getLlama({gpu: false, build: "never", logLevel: "error"});
const out = {};
for (const file of fs.readdirSync(folder).filter((f) => f.endsWith(".gguf")).sort()) {
    const model = await llama.loadModel({modelPath: path.join(folder, file), vocabOnly: true});
    out[file.replace(".gguf", "")] = texts.map((t) => [...model.tokenize(t, true)]);
    await model.dispose();
}
const lines = Object.entries(out).map(([k, v]) => JSON.stringify(k) + ": [\n" + v.map((x) => JSON.stringify(x)).join(",\n") + "\n]");
fs.writeFileSync(path.join(here, "..", path.basename(folder) + "-goldens.json"), "{\n" + lines.join(",\n") + "\n}\n");
await llama.dispose();
